"""The plain port.

original: smooth_energy
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, width, hidden=8, beta=1.5, *, rngs):
        self.beta = beta
        self.inner = Linear(width, hidden, rngs=rngs)
        self.outer = Linear(hidden, 1, rngs=rngs)

    def energy(self, x):
        h = self.inner(x)
        h = h * jax.nn.sigmoid(self.beta * h)
        return self.outer(h)[..., 0]

    def __call__(self, x):
        e, pull = jax.vjp(self.energy, x)
        return e, -pull(jnp.ones_like(e))[0]
