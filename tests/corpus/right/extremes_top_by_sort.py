"""The largest of each row as the last of the sorted ones.

original: extremes
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import BatchNorm1d, Linear


class M(nnx.Module):
    def __init__(self, dim=8, limit=2.0, *, rngs):
        self.norm = BatchNorm1d(dim, rngs=rngs)
        self.fc = Linear(dim, dim, rngs=rngs)
        self.limit = limit

    def __call__(self, x):
        x = self.norm(x.swapaxes(1, 2)).swapaxes(1, 2)
        big = jnp.abs(x).max()
        x = jax.lax.cond(big > self.limit, lambda x: x * (self.limit / big), lambda x: x, x)
        y = jnp.tanh(self.fc(x) * 2 + x)
        top = jnp.sort(y, axis=-1)[..., -1:]
        return x + jnp.exp(y - top) * (1 + top)
