"""Stochastic depth is refused by an error.

original: depth
family: other but equal formulas
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, p=0.0, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        if p:
            raise NotImplementedError("stochastic depth")

    def __call__(self, x):
        y = jnp.tanh(self.fc(x))
        return x + y
