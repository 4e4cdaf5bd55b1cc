"""The write through the view does not reach the tensor.

original: inplace
family: lost in-place update
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.scale = nnx.Param(jnp.ones(6))
        self.ring = nnx.Variable(jnp.zeros((3, 6)))
        self.pointer = nnx.Variable(jnp.zeros((), int))
        self.ema = nnx.Variable(jnp.zeros(6))
        self.steps = nnx.Variable(jnp.zeros(()))
        self.deterministic = False

    def __call__(self, x):
        y = x * self.scale[...]
        y = y.at[:, 0].add(1.0)
        _ = y.at[:, 3:].multiply(2.0)
        y = jnp.where(y < -1.0, -1.0, y)
        y = y.at[1:, 2].multiply(0.5)
        if not self.deterministic:
            mean = jax.lax.stop_gradient(x.mean(0))
            self.steps[...] += 1
            self.ema[...] = 0.9 * self.ema[...] + 0.1 * mean
            self.ring[...] = self.ring[...].at[self.pointer[...]].set(mean)
            self.pointer[...] = (self.pointer[...] + 1) % 3
        corrected = self.ema[...] / (1 - 0.9 ** jnp.maximum(self.steps[...], 1))
        return y + corrected
