"""The ReLU is a choice, inside of which the gate is applied.

original: rezero
family: reassociated
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d=6, *, rngs):
        self.fc = Linear(d, d, rngs=rngs)
        self.gate = nnx.Param(jnp.zeros(1))
        self.head = Linear(d, 2, rngs=rngs)
        self.head.weight = jnp.zeros((2, d))
        self.head.bias[...] = jnp.zeros(2)

    def __call__(self, x):
        branch = self.fc(x)
        h = x + jnp.where(branch <= 0, 0, branch * self.gate[...])
        return h, self.head(h), jax.nn.sigmoid(30 * h)
