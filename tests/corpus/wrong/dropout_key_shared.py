"""Two dropouts share a key.

original: dropout
family: baked-in randomness
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


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
        self.path = DropPath(0.3, rngs=rngs)
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        h = jnp.tanh(self.fc(x))
        if not self.deterministic:
            key = self.rngs()
            h = h * jax.random.bernoulli(key, 0.75, h.shape) / 0.75
            h = h * jax.random.bernoulli(key, 0.5, (*h.shape[:2], 1)) / 0.5
            h = h + 0.05 * jax.random.normal(self.rngs(), h.shape)
        return x + self.path(h)
