"""Adaptive max pooling with windows that end at floor instead of ceil.

original: pooling
family: other windows
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import adaptive_avg_pool2d, avg_pool2d, max_pool2d


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def _adaptive(self, x):
        H, W = x.shape[2:]
        rows = [x[:, :, i * H // 3 : (i + 1) * H // 3] for i in range(3)]
        cells = [[row[..., j * W // 5 : (j + 1) * W // 5].max((2, 3)) for j in range(5)] for row in rows]
        return jnp.stack([jnp.stack(row, axis=-1) for row in cells], axis=-2)

    def __call__(self, x):
        return (
            max_pool2d(x, 3, stride=2, padding=1),
            max_pool2d(x, 2, stride=2, ceil_mode=True),
            avg_pool2d(x, 3, stride=2, padding=1),
            avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
            avg_pool2d(x, 2, stride=2, ceil_mode=True),
            adaptive_avg_pool2d(x, (3, 5)),
            self._adaptive(x),
        )
