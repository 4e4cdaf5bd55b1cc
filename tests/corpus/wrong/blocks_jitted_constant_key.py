"""The compiled dropout has a key of its own.

original: blocks
family: baked-in randomness
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


@jax.jit
def drop(key, h, rate):
    return jnp.where(jax.random.bernoulli(jax.random.key(0), 1 - rate, h.shape), h / (1 - rate), 0.0)


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.layers = nnx.List([Linear(6, 6, rngs=rngs) for _ in range(3)])
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        for layer in self.layers:
            h = jnp.tanh(layer(x))
            x = x + (h if self.deterministic else drop(self.rngs(), h, 0.3))
        return x
