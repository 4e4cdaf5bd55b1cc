"""The table is computed in each call, in float32, and takes the dtype of the input.

original: unsaved_table
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, width, length, *, rngs):
        self.width = width
        self.length = length
        self.proj = Linear(width, width, rngs=rngs)

    def __call__(self, x):
        table = jnp.sin(jnp.arange(self.length)[:, None] / (1.0 + jnp.arange(self.width)))
        y = self.proj(x) + table[: x.shape[1]].astype(x.dtype)
        scores = jax.nn.softmax(y.astype(jnp.float32), axis=-1)
        return x * scores.astype(x.dtype)
