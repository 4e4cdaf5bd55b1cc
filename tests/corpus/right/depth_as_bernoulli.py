"""The rows that are left out are drawn by `bernoulli`.

original: depth
family: other but equal formulas
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
            y = y * jax.random.bernoulli(self.rngs(), 1 - self.p, (x.shape[0], 1)) / (1 - self.p)
        return x + y
