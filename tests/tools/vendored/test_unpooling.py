"""Unpooling where several values have one index, against PyTorch."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tools.vendored.pooling_functions import max_unpool1d, max_unpool2d, max_unpool3d

CASES: dict[int, tuple[Any, Any]] = {
    1: (max_unpool1d, torch.nn.functional.max_unpool1d),
    2: (max_unpool2d, torch.nn.functional.max_unpool2d),
    3: (max_unpool3d, torch.nn.functional.max_unpool3d),
}


@pytest.mark.parametrize("spatial", CASES)
def test_each_value_has_the_gradient_at_its_index(spatial: int) -> None:
    ours, theirs = CASES[spatial]
    rng = np.random.default_rng(0)
    shape, whole = (2, 3, *[2] * spatial), (2, 3, *[4] * spatial)
    values, weights = rng.normal(size=shape), rng.normal(size=whole)
    indices = rng.integers(0, 4**spatial, shape)
    leaf = torch.from_numpy(values).requires_grad_()
    (theirs(leaf, torch.from_numpy(indices), 2) * torch.from_numpy(weights)).sum().backward()
    with jax.enable_x64(True):

        def loss(array: jax.Array, at: jax.Array) -> Any:
            return (ours(array, at, 2) * weights).sum()

        gradient = jax.jit(jax.grad(loss))(jnp.asarray(values), jnp.asarray(indices))
    assert leaf.grad is not None
    np.testing.assert_array_equal(np.asarray(gradient), leaf.grad.numpy())
