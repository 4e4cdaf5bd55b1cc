"""Each option does what it does in torch.

original: options
family: plain port
"""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Dropout, Linear

ACTIVATIONS = {"tanh": jnp.tanh, "gelu": lambda x: jax.nn.gelu(x, approximate=False), "silu": jax.nn.silu}


class M(nnx.Module):
    def __init__(self, dim=6, hidden=None, act="tanh", heads=2, groups=2, depth=2, dropout=0.0, detach=False, halve=False, *, rngs):
        hidden = hidden or 4 * dim
        self.inner = Linear(dim, hidden, rngs=rngs)
        self.outer = Linear(hidden, dim, rngs=rngs)
        self.outer.weight = jax.random.normal(rngs.params(), (dim, hidden)) * 0.02 / math.sqrt(2 * depth)
        self.act = ACTIVATIONS[act]
        self.drop = Dropout(dropout, rngs=rngs)
        self.heads, self.groups, self.detach, self.halve = heads, groups, detach, halve

    def __call__(self, x):
        y = self.act(self.inner(x)) * self.heads
        if self.detach:
            y = jax.lax.stop_gradient(y)
        if self.halve and self.drop.deterministic:
            y = y / 2
        return x / self.groups + self.drop(self.outer(y))
