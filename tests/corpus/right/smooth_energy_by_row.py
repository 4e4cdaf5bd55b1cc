"""The force is the gradient of each row's energy.

original: smooth_energy
family: other but equal formulas
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
        return self.outer(h * jax.nn.sigmoid(self.beta * h)).squeeze(-1)

    def __call__(self, x):
        energy, slope = jax.vmap(jax.value_and_grad(self.energy))(x)
        return energy, -slope
