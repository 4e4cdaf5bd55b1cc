"""Values that are written at an index which has no places for all of them, as torch's scatter allows."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tools.vendored.tensor_indexing import add_along_axis, set_along_axis

INDEX = [[0, 2], [1, 1]]


@pytest.mark.parametrize("rows", [2, 3, 5])
@pytest.mark.parametrize("axis", [0, 1])
def test_values_beyond_the_index_are_left_out(rows: int, axis: int) -> None:
    values = np.arange(1.0, 1.0 + 3 * rows).reshape(rows, 3)
    index = torch.tensor(INDEX)
    added = torch.zeros(4, 4, dtype=torch.float64).scatter_add(axis, index, torch.tensor(values))
    written = torch.zeros(4, 4, dtype=torch.float64).scatter(axis, index[:, :1], torch.tensor(values))
    zeros = jnp.zeros((4, 4))
    np.testing.assert_array_equal(add_along_axis(zeros, axis, jnp.array(INDEX), jnp.array(values)), added)
    np.testing.assert_array_equal(set_along_axis(zeros, axis, jnp.array(INDEX)[:, :1], jnp.array(values)), written)
