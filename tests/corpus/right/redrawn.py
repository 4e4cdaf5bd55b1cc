"""The bias is drawn first, and bounds are the initialiser's.

original: redrawn
family: plain port
"""

import math

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, inputs, outputs, *, rngs: nnx.Rngs):
        self.weight = nnx.Param(jnp.zeros((inputs, outputs)))
        self.bias = nnx.Param(jnp.zeros(outputs))
        self.scale = nnx.Param(jnp.ones(outputs))
        self.reset_parameters(rngs=rngs)

    def reset_parameters(self, *, rngs: nnx.Rngs):
        bound = 1.0 / math.sqrt(self.weight.shape[1])
        self.bias[...] = bound * (2 * jax.random.uniform(rngs.params(), self.bias.shape) - 1)
        self.weight[...] = jax.random.uniform(rngs.params(), self.weight.shape, minval=-bound, maxval=bound)

    def bound(self):
        self.weight[...] = jnp.clip(self.weight[...], -0.1, 0.1)

    def __call__(self, x):
        return (x @ self.weight[...] + self.bias[...]) * self.scale[...]
