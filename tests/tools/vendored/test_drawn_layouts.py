"""Weights are drawn in torch's layout, in torch's order."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

from migrate_agent.tools.vendored.conv_layers import Conv2d
from migrate_agent.tools.vendored.linear import Linear


@pytest.mark.parametrize(
    ("make", "shape", "inputs"),
    [
        (lambda rngs: Linear(3, 5, rngs=rngs), (5, 3), 3),
        (lambda rngs: Conv2d(4, 6, (2, 3), groups=2, rngs=rngs), (6, 2, 2, 3), 12),
    ],
)
def test_weights_are_drawn_as_torch_lays_them_out(make: object, shape: tuple[int, ...], inputs: int) -> None:
    layer, again = make(nnx.Rngs(0)), nnx.Rngs(0)  # type: ignore[operator]
    bound = inputs**-0.5
    for value, size in ((layer.weight, shape), (layer.bias[...], shape[:1])):
        drawn = jax.random.uniform(again.params(), size, minval=-bound, maxval=bound)
        np.testing.assert_array_equal(value, drawn)
