"""The plain port.

original: straight_through
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, bits=8, momentum=0.1, observe=True, enabled=True, slope=3.0, *, rngs):
        self.bits = bits
        self.momentum = momentum
        self.observe = observe
        self.enabled = enabled
        self.slope = slope
        self.low = nnx.Variable(jnp.array(-1.0))
        self.high = nnx.Variable(jnp.array(1.0))
        self.gain = nnx.Param(jnp.array(1.0))
        self.deterministic = False

    def soft(self, x):
        return jnp.tanh(x / self.slope) ** 2 * self.slope + x

    def __call__(self, x):
        x = self.soft(self.gain[...] * x)
        if not self.deterministic and self.observe:
            fixed = jax.lax.stop_gradient(x)
            self.low[...] += self.momentum * (fixed.min() - self.low[...])
            self.high[...] += self.momentum * (fixed.max() - self.high[...])
        if not self.enabled:
            return x
        step = jnp.maximum(self.high[...] - self.low[...], 1e-5) / (2**self.bits - 1)
        levels = jnp.clip(jnp.round((x - self.low[...]) / step), 0, 2**self.bits - 1)
        y = levels * step + self.low[...]
        return x + jax.lax.stop_gradient(y - x)
