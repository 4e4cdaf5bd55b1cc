"""The columns of the mixing weights have one sum, in the place of the rows.

original: normalised
family: initialisation
"""

import jax
import jax.numpy as jnp
from flax import nnx


def normalised(values, axis):
    return values / jnp.linalg.norm(values, axis=axis, keepdims=True)


class M(nnx.Module):
    def __init__(self, dim=6, size=16, filters=10, *, rngs):
        self.queue = nnx.Variable(normalised(jax.random.normal(rngs.params(), (dim, size)), 0))
        self.prototypes = nnx.Param(normalised(jax.random.normal(rngs.params(), (filters, dim)), 1))
        self.mix = nnx.Param(jax.nn.softmax(jax.random.normal(rngs.params(), (filters, size)), axis=0) * filters / size)
        self.free = nnx.Param(jax.random.normal(rngs.params(), (size, dim)) * dim**-0.5)

    def __call__(self, x):
        scores = x @ self.queue[...]
        return scores + x @ self.prototypes[...].T @ self.mix[...], jnp.tanh(scores) @ self.free[...]
