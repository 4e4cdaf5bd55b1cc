"""Rows are left out at a tenth of the rate.

original: paths
family: constants
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Dropout, Linear


class M(nnx.Module):
    def __init__(self, p=0.1, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        self.drop = Dropout(p, rngs=rngs)
        self.p = p
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        y = self.drop(jnp.tanh(self.fc(x)))
        if not self.deterministic:
            keep = jax.random.uniform(self.rngs(), (x.shape[0], 1)) >= 0.1 * self.p
            y = y * keep / (1 - self.p)
        return x + y
