"""The plain port, whose table is a variable that no checkpoint has.

original: unsaved_table
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, width, length, *, rngs):
        positions = jnp.arange(length)[:, None] / (1.0 + jnp.arange(width))
        self.table = nnx.Cache(jnp.sin(positions))
        self.proj = Linear(width, width, rngs=rngs)

    def __call__(self, x):
        y = self.proj(x) + self.table[...][: x.shape[1]]
        scores = jax.nn.softmax(y.astype(jnp.float32), axis=-1)
        return x * scores.astype(x.dtype)
