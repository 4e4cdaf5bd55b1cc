"""The object as it is.

original: kept_object
family: plain port
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class Wiring:
    def __init__(self, units):
        self.units = units

    @property
    def size(self):
        return self.units * 2

    def layer(self, number):
        return list(range(self.units))[number:]


class M(nnx.Module):
    def __init__(self, wiring, *, rngs):
        self.wiring = wiring
        self.fc = Linear(4, wiring.units, rngs=rngs)

    def __call__(self, x):
        return jnp.tanh(self.fc(x))
