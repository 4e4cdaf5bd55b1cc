"""Inputs of three axes alone are taken; others are an error.

original: ranks
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.query = Linear(6, 6, rngs=rngs)

    def __call__(self, x, context):
        scores = jnp.einsum("bid,bjd->bij", self.query(x), context)
        _, rows, columns = scores.shape
        later = jnp.triu(jnp.ones((rows, columns), bool), columns - rows + 1)
        weights = jax.nn.softmax(jnp.where(later, -jnp.finfo(scores.dtype).max, scores), axis=-1)
        return jnp.einsum("bij,bjd->bid", weights, context) / columns
