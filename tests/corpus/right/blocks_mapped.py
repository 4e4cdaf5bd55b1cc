"""Each row draws its own mask, under `vmap`.

original: blocks
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.layers = nnx.List([Linear(6, 6, rngs=rngs) for _ in range(3)])
        self.rngs = rngs
        self.deterministic = False

    def _drop(self, h):
        if self.deterministic:
            return h
        keys = jax.random.split(self.rngs(), h.shape[0])
        return jax.vmap(lambda key, row: jnp.where(jax.random.bernoulli(key, 0.7, row.shape), row / 0.7, 0.0))(keys, h)

    def __call__(self, x):
        for layer in self.layers:
            x = x + self._drop(jnp.tanh(layer(x)))
        return x
