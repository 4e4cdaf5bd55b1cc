"""The steps start uniform between their bounds.

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
        step = (jax.random.uniform(rngs.params(), (dim,)) * (high - low) + low).clip(min=floor)
        self.project.bias[...] = step + jnp.log(-jnp.expm1(-step))
        self.decay = nnx.Param(jnp.log(jnp.arange(1, dim + 1, dtype=jnp.float32)))

    def __call__(self, x):
        return jnp.exp(-jax.nn.softplus(self.project(x)) * jnp.exp(self.decay[...]))
