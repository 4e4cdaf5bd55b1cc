"""One key for both, split, and the last parameter drawn first.

original: redrawn_by_scale
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, inputs, outputs, *, rngs: nnx.Rngs):
        self.rngs = rngs
        self.first = nnx.Param(jnp.zeros((inputs, outputs)))
        self.second = nnx.Param(jnp.zeros((outputs, inputs)))

    def reset(self, stdv=0.1, mean=0.0):
        keys = jax.random.split(self.rngs.params())
        self.second[...] = mean + stdv * jax.random.normal(keys[0], self.second.shape)
        self.first[...] = mean + stdv * jax.random.normal(keys[1], self.first.shape)

    def __call__(self, x):
        return x @ self.first[...] @ self.second[...]
