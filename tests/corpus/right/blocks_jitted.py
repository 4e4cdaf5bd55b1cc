"""Dropout is a function that is compiled on its own, and is told its rate.

original: blocks
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


@jax.jit
def drop(key, h, rate):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, h.shape), h / (1 - rate), 0.0)


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
