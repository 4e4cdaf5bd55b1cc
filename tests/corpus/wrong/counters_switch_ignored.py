"""The switch among the buffers is ignored.

original: counters
family: ignored parameter
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
        y = sum(self.fc(part) for part in parts) / len(parts)
        return y * self.scale[...] * jnp.minimum(1 + self.steps[...] / 1000, 2.0)
