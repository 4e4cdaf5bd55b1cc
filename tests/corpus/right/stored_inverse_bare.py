"""The inverse has one name of its own.

original: stored_inverse
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, channels, *, rngs: nnx.Rngs):
        self.weight = nnx.Param(jnp.linalg.qr(jax.random.normal(rngs.params(), (channels, channels)))[0])
        self.cached = nnx.data(None)

    def store(self):
        self.cached = jnp.linalg.inv(self.weight[...])

    def restart(self):
        self.cached = jnp.zeros_like(self.weight[...])

    def __call__(self, x, reverse=False):
        if not reverse:
            sign, size = jnp.linalg.slogdet(self.weight[...])
            return x @ self.weight[...], jnp.where(sign < 0, jnp.nan, size)
        return x @ (jnp.linalg.inv(self.weight[...]) if self.cached is None else self.cached), None
