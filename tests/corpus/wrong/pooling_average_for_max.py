"""An average pool in place of a max pool.

original: pooling
family: swapped parts
"""

from flax import nnx
from nnx_layers_jax import adaptive_avg_pool2d, adaptive_max_pool2d, avg_pool2d, max_pool2d


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return (
            max_pool2d(x, 3, stride=2, padding=1),
            avg_pool2d(x, 2, stride=2, ceil_mode=True),
            avg_pool2d(x, 3, stride=2, padding=1),
            avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
            avg_pool2d(x, 2, stride=2, ceil_mode=True),
            adaptive_avg_pool2d(x, (3, 5)),
            adaptive_max_pool2d(x, (3, 5)),
        )
