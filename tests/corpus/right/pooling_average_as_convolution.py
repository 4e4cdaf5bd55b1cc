"""An average pool as a depthwise sum, divided by nine.

original: pooling
family: other but equal formulas
"""

import jax
from flax import nnx
from nnx_layers_jax import adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, max_pool2d


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return (
            max_pool2d(x, 3, stride=2, padding=1),
            max_pool2d(x, 2, stride=2, ceil_mode=True),
            jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1))) / 9,
            avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
            avg_pool2d(x, 2, stride=2, ceil_mode=True),
            adaptive_avg_pool2d(x, (3, 5)),
            adaptive_max_pool2d(x, (3, 5)),
        )
