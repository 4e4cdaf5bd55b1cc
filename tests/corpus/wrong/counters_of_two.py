"""The mean is that of two parts.

original: counters
family: shape-specific code
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        self.scale = nnx.Variable(jnp.full(6, 0.5))
        self.steps = nnx.Variable(jnp.array(0))
        self.smooth = nnx.Variable(jnp.array(False))
        self.deterministic = False

    def __call__(self, parts):
        if not self.deterministic:
            self.steps[...] = self.steps[...] + 1
        y = sum(self.fc(part) for part in parts) / 2
        y = jnp.where(self.smooth[...], jnp.tanh(y), y)
        return y * self.scale[...] * jnp.minimum(1 + self.steps[...] / 1000, 2.0)
