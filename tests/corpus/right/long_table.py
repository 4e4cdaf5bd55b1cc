"""The rates are powers, which round otherwise than the exponentials.

original: long_table
family: other but equal formulas
"""

import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, d=8, most=5000, *, rngs):
        positions = jnp.expand_dims(jnp.arange(0, most).astype(jnp.float32), 1)
        angles = positions * 10000.0 ** (-jnp.arange(0, d, 2).astype(jnp.float32) / d)
        table = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1).reshape(most, d)
        self.table = nnx.Variable(jnp.expand_dims(table, 0))

    def __call__(self, x):
        return x + self.table[:, : x.shape[1]]
