"""The largest of each row is treated as a constant, as the one of a softmax may be.

original: extremes
family: dropped or added detach
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
        top = jax.lax.stop_gradient(y.max(-1, keepdims=True))
        return x + jnp.exp(y - top) * (1 + top)
