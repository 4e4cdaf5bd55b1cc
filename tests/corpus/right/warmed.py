"""What the first call resolves is an attribute here as there; the next call compiles once more.

original: warmed
family: plain port
"""

import jax.numpy as jnp
from flax import nnx
from jax import lax
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        self.angles = nnx.Cache(jnp.zeros((16, 6)))
        self.filled = 0

    def __call__(self, x, positions):
        length = len(positions)
        if length > self.filled:
            rates = 1 / jnp.arange(1.0, 7.0)
            filled = lax.stop_gradient(positions)[:, None] * rates
            self.angles[...] = self.angles[...].at[:length].set(filled)
            self.filled = length
        return self.fc(x) * jnp.cos(self.angles[:length])
