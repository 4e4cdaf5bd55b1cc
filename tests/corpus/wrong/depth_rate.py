"""Rows are left out at another rate.

original: depth
family: constants
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, p=0.0, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        self.p = p
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        y = jnp.tanh(self.fc(x))
        if not self.deterministic and self.p > 0:
            y = y * (jax.random.uniform(self.rngs(), (x.shape[0], 1)) >= 0.9 * self.p) / (1 - self.p)
        return x + y
