"""The padding counts in the average that should leave it out.

original: pooling
family: padding sides
"""

from flax import nnx
from nnx_layers_jax import adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, max_pool2d


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return (
            max_pool2d(x, 3, stride=2, padding=1),
            max_pool2d(x, 2, stride=2, ceil_mode=True),
            avg_pool2d(x, 3, stride=2, padding=1),
            avg_pool2d(x, 3, stride=2, padding=1),
            avg_pool2d(x, 2, stride=2, ceil_mode=True),
            adaptive_avg_pool2d(x, (3, 5)),
            adaptive_max_pool2d(x, (3, 5)),
        )
