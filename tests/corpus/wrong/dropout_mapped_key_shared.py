"""Each sample draws its masks, under `vmap`, and both with the same key.

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

    def _drop(self, keys, h, keep, shape):
        def one(key, row):
            return jnp.where(jax.random.bernoulli(key, keep, shape), row / keep, 0.0)

        return h if self.deterministic else jax.vmap(one)(keys, h)

    def __call__(self, x):
        keys, others = [jax.random.split(self.rngs(), len(x))] * 2
        h = self._drop(keys, jnp.tanh(self.fc(x)), 0.75, x.shape[1:])
        h = self._drop(others, h, 0.5, (x.shape[1], 1))
        if not self.deterministic:
            h = h + 0.05 * jax.random.normal(self.rngs(), h.shape)
        return x + self.path(h)
