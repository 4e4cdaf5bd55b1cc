"""Heads are summed before the products.

original: neighbours
family: reassociated
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, width, heads, *, rngs):
        draw = jax.nn.initializers.normal(width**-0.5)
        self.value = nnx.Param(draw(rngs.params(), (width, heads)))
        self.key = nnx.Param(draw(rngs.params(), (width, heads)))
        self.query = nnx.Param(draw(rngs.params(), (width, heads)))

    def __call__(self, nodes, edges):
        asked, keys = nodes @ self.query.sum(1), nodes @ self.key.sum(1)
        scores = jax.nn.relu(asked[:, None] + keys)
        scores = jnp.where(edges > 0, scores, -1e4)
        return jax.nn.softmax(scores, axis=-1) @ (nodes @ self.value[...])
