"""Dropout is a mask that is multiplied with.

original: options
family: other but equal formulas
"""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear

ACTIVATIONS = {"tanh": jnp.tanh, "gelu": lambda x: jax.nn.gelu(x, approximate=False), "silu": jax.nn.silu}


class M(nnx.Module):
    def __init__(self, dim=6, hidden=None, act="tanh", heads=2, groups=2, depth=2, dropout=0.0, detach=False, halve=False, *, rngs):
        hidden = hidden or 4 * dim
        self.inner = Linear(dim, hidden, rngs=rngs)
        self.outer = Linear(hidden, dim, rngs=rngs)
        self.outer.weight = jax.random.normal(rngs.params(), (dim, hidden)) * 0.02 / math.sqrt(2 * depth)
        self.act = ACTIVATIONS[act]
        self.rate, self.rngs, self.deterministic = dropout, rngs, False
        self.heads, self.groups, self.detach, self.halve = heads, groups, detach, halve

    def __call__(self, x):
        y = self.act(self.inner(x)) * self.heads
        if self.detach:
            y = jax.lax.stop_gradient(y)
        if self.halve and self.deterministic:
            y = y / 2
        y = self.outer(y)
        if self.rate and not self.deterministic:
            y = y * jax.random.bernoulli(self.rngs.dropout(), 1 - self.rate, y.shape) / max(1 - self.rate, 1e-9)
        return x / self.groups + y
