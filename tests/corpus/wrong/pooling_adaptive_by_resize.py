"""Adaptive average pooling by linear interpolation.

original: pooling
family: other windows
"""

import jax
from flax import nnx
from nnx_layers_jax import adaptive_max_pool2d, avg_pool2d, max_pool2d


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return (
            max_pool2d(x, 3, stride=2, padding=1),
            max_pool2d(x, 2, stride=2, ceil_mode=True),
            avg_pool2d(x, 3, stride=2, padding=1),
            avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
            avg_pool2d(x, 2, stride=2, ceil_mode=True),
            jax.image.resize(x, (*x.shape[:2], 3, 5), "linear"),
            adaptive_max_pool2d(x, (3, 5)),
        )
