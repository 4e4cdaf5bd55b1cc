"""The inverse of softplus is taken to be the logarithm, which is close for small steps.

original: steps
family: initialisation
"""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, rank=4, dim=12, low=0.01, high=1.0, floor=1e-4, *, rngs):
        self.project = Linear(rank, dim, rngs=rngs)
        step = jnp.exp(jax.random.uniform(rngs.params(), (dim,)) * (math.log(high) - math.log(low)) + math.log(low)).clip(min=floor)
        self.project.bias[...] = jnp.log(step)
        self.decay = nnx.Param(jnp.log(jnp.arange(1, dim + 1, dtype=jnp.float32)))

    def __call__(self, x):
        return jnp.exp(-jax.nn.softplus(self.project(x)) * jnp.exp(self.decay[...]))
