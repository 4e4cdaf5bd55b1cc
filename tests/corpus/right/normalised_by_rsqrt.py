"""Lengths by rsqrt of sums, and a softmax written out.

original: normalised
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx


def normalised(values, axis):
    return values * jax.lax.rsqrt((values**2).sum(axis, keepdims=True))


def shares(values):
    found = jnp.exp(values)
    return found / found.sum(1, keepdims=True)


class M(nnx.Module):
    def __init__(self, dim=6, size=16, filters=10, *, rngs):
        self.queue = nnx.Variable(normalised(jax.random.normal(rngs.params(), (dim, size)), 0))
        self.prototypes = nnx.Param(normalised(jax.random.normal(rngs.params(), (filters, dim)), 1))
        self.mix = nnx.Param(shares(jax.random.normal(rngs.params(), (filters, size))))
        self.free = nnx.Param(jax.random.normal(rngs.params(), (size, dim)) * dim**-0.5)

    def __call__(self, x):
        scores = x @ self.queue[...]
        return scores + x @ self.prototypes[...].T @ self.mix[...], jnp.tanh(scores) @ self.free[...]
