"""Dropout by choosing, with the reciprocal of the share kept.

original: dropout
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Dropout1d, Linear


class DropPath(nnx.Module):
    def __init__(self, p, *, rngs):
        self.p = p
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        if self.deterministic:
            return x
        keep = jax.random.uniform(self.rngs(), (x.shape[0], 1, 1)) >= self.p
        return x * keep / (1 - self.p)


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(10, 10, rngs=rngs)
        self.channels = Dropout1d(0.5, rngs=rngs)
        self.path = DropPath(0.3, rngs=rngs)
        self.rngs = rngs
        self.deterministic = False

    def _drop(self, h):
        if self.deterministic:
            return h
        return jnp.where(jax.random.bernoulli(self.rngs(), 0.75, h.shape), h * (1 / 0.75), 0.0)

    def __call__(self, x):
        h = self._drop(jnp.tanh(self.fc(x)))
        h = self.channels(h)
        if not self.deterministic:
            h = h + 0.05 * jax.random.normal(self.rngs(), h.shape)
        return x + self.path(h)
