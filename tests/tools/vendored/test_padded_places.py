"""Rows at the places that a mask selects, of a fixed number: values and gradients are torch's, also where nothing is selected."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tools.vendored.tensor_sorting import count_places, next_places, padded_nonzero, take_places

X = np.asarray([[-1.0, 2.0], [0.5, 0.25], [4.0, 3.0], [1.0, 1.5]], np.float32)
MASKS = ([False] * 4, [False, False, True, False], [False, True, True, True], [True] * 4)


@pytest.mark.parametrize("mask", MASKS)
def test_rows_are_written_where_they_were_read(mask: list[bool]) -> None:
    def ours(x: jax.Array) -> jax.Array:
        places = padded_nonzero(jnp.asarray(mask))[0]
        # The logarithm of the first row is no number: it is computed only where it is selected.
        return jnp.zeros_like(x).at[places].set(jnp.log(take_places(x, places)))

    x = torch.tensor(X, requires_grad=True)
    places = torch.tensor(mask).nonzero().squeeze(1)
    torch_rows = torch.zeros_like(x).index_copy(0, places, torch.log(x.index_select(0, places)))
    torch_rows.sum().backward()  # type: ignore[no-untyped-call]
    np.testing.assert_allclose(ours(jnp.asarray(X)), torch_rows.detach().numpy(), rtol=1e-6)
    gradient = jax.grad(lambda x: ours(x).sum())(jnp.asarray(X))
    assert x.grad is not None
    np.testing.assert_allclose(gradient, x.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("mask", MASKS)
def test_rows_are_written_one_after_the_other(mask: list[bool]) -> None:
    places, start = padded_nonzero(jnp.asarray(mask))[0], 2
    selected = X[np.asarray(mask)]
    expected = np.zeros((8, 2), np.float32)
    expected[start : start + len(selected)] = selected
    written = jnp.zeros((8, 2)).at[next_places(places, start)].set(take_places(jnp.asarray(X), places))
    np.testing.assert_array_equal(written, expected)
    assert int(count_places(places)) == len(selected)
