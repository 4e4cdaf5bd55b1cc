"""The row of padding gets a gradient.

original: masked
family: dropped or added detach
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class Embedding(nnx.Module):
    def __init__(self, count, d, *, rngs):
        self.weight = nnx.Param(jax.random.normal(rngs.params(), (count, d)).at[0].set(0.0))

    def __call__(self, ids):
        weight = self.weight[...]
        return weight[ids]


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.tokens = Embedding(12, 6, rngs=rngs)
        self.query = Linear(6, 6, rngs=rngs)

    def __call__(self, ids, mask):
        x = self.tokens(ids)
        scores = self.query(x) @ jnp.swapaxes(x, 1, 2)
        scores = jnp.where(mask[:, None, :], scores, -jnp.inf)
        return jnp.nan_to_num(jax.nn.softmax(scores, axis=-1), nan=0.0) @ x
