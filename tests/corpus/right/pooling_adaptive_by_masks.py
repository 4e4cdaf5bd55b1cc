"""Adaptive average pooling as masked sums.

original: pooling
family: other but equal formulas
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import adaptive_max_pool2d, avg_pool2d, max_pool2d


def windows(outputs, inputs):
    i, j = jnp.arange(outputs)[:, None], jnp.arange(inputs)
    return (j >= i * inputs // outputs) & (j < -((-(i + 1) * inputs) // outputs))


def adaptive(x, rows, columns):
    inside = windows(rows, x.shape[2])[:, None, :, None] & windows(columns, x.shape[3])[:, None, :]
    return jnp.where(inside, x[:, :, None, None], 0).sum((-2, -1)) / inside.sum((-2, -1))


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
            adaptive(x, 3, 5),
            adaptive_max_pool2d(x, (3, 5)),
        )
