"""No row is ever left out.

original: depth
family: dropped dropout
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, p=0.0, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        self.p = p

    def __call__(self, x):
        y = jnp.tanh(self.fc(x))
        return x + y
