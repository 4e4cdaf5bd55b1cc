"""The plain port.

original: fixed_table
family: plain port
"""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Embedding


class M(nnx.Module):
    def __init__(self, *, rngs):
        place = jnp.arange(0, 9, dtype=jnp.float32)[:, None]
        rate = jnp.exp(jnp.arange(0, 6, 2, dtype=jnp.float32) * -(math.log(10000.0) / 6))
        table = jnp.zeros((9, 6))
        table = table.at[:, 0::2].set(jnp.sin(place * rate))
        table = table.at[:, 1::2].set(jnp.cos(place * rate))
        self.emb = Embedding(9, 6, rngs=rngs)
        self.emb.embedding = nnx.Variable(table)

    def __call__(self, x):
        return jax.lax.stop_gradient(self.emb(x))
