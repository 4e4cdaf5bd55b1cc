"""Adaptive average pooling as two products with matrices of shares.

original: pooling
family: other but equal formulas
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import adaptive_max_pool2d, avg_pool2d, max_pool2d


def shares(outputs, inputs):
    i, j = jnp.arange(outputs)[:, None], jnp.arange(inputs)
    inside = (j >= i * inputs // outputs) & (j < -((-(i + 1) * inputs) // outputs))
    return inside / inside.sum(1, keepdims=True)


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
            jnp.einsum("ih,bchw,jw->bcij", shares(3, x.shape[2]), x, shares(5, x.shape[3])),
            adaptive_max_pool2d(x, (3, 5)),
        )
