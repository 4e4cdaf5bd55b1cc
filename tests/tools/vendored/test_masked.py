"""Rows that a mask selects: what is masked out reaches neither results nor gradients, whatever it holds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tools.vendored.masked import padded_rows, set_next_rows, set_padded_rows

MASKS = [[True, False, True], [False, False, False], [True, True, True]]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("outside", [float("nan"), float("inf"), -1.0, 0.0])
def test_what_is_masked_out_leaves_no_trace(mask: list[bool], outside: float) -> None:
    values = np.where(np.array(mask)[:, None], np.array([[4.0, 9.0], [2.0, 3.0], [1.0, 5.0]]), outside)
    weight = np.array([2.0, 0.5])

    def ours(x: jax.Array, w: jax.Array) -> jax.Array:
        selected = jnp.array(mask)
        rows = padded_rows(x, selected)
        return set_padded_rows(jnp.ones_like(x), selected, jnp.log(jnp.sqrt(rows)) * w)

    x, w = (torch.tensor(array, requires_grad=True) for array in (values, weight))
    expected = torch.ones_like(x)
    expected[torch.tensor(mask)] = x[torch.tensor(mask)].sqrt().log() * w
    expected.sum().backward()  # type: ignore[no-untyped-call]
    with jax.enable_x64(True):
        arrays = jnp.array(values), jnp.array(weight)
        gradients = jax.jit(jax.grad(lambda x, w: ours(x, w).sum(), argnums=(0, 1)))(*arrays)
        np.testing.assert_allclose(ours(*arrays), expected.detach().numpy(), rtol=1e-12)
    for gradient, leaf in zip(gradients, (x, w), strict=True):
        np.testing.assert_allclose(gradient, np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("rows", [2, 1])
def test_selected_places_take_one_row_after_the_other(rows: int) -> None:
    x, mask = torch.zeros(2, 2, 3), torch.tensor([[True, False], [False, True]])
    values = torch.arange(3.0 * rows).view(rows, 3)
    x[mask] = values
    got = set_next_rows(jnp.zeros((2, 2, 3)), jnp.array(mask.numpy()), jnp.array(values.numpy()))
    np.testing.assert_array_equal(got, x.numpy())


def test_a_mask_may_end_before_the_array_does_and_there_may_be_no_rows() -> None:
    x, mask = jnp.arange(12.0).reshape(4, 3), jnp.array([True, False, True])
    got = set_padded_rows(x, mask, -padded_rows(x, mask))
    np.testing.assert_array_equal(got, x * jnp.array([-1.0, 1.0, -1.0, 1.0])[:, None])
    empty, nothing = jnp.zeros((0, 2, 3)), jnp.zeros((0, 2), bool)
    assert padded_rows(empty, nothing).shape == (0, 3)
    assert set_padded_rows(empty, nothing, padded_rows(empty, nothing)).shape == empty.shape
