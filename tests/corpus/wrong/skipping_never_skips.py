"""Numbers are drawn, and no layer is ever left out.

original: skipping
family: dropped dropout or dropout scale
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, p=0.02, scale=0.1, *, rngs):
        self.layers = nnx.List([Linear(8, 8, rngs=rngs) for _ in range(3)])
        self.p = p
        self.scale = scale
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        if not self.deterministic:
            x = x * jax.random.uniform(self.rngs(), minval=1 - self.scale, maxval=1 + self.scale)
        for layer in self.layers:
            longer = x + jnp.tanh(layer(x))
            if not self.deterministic:
                longer = jnp.where(jax.random.uniform(self.rngs()) < self.p, longer, longer)
            x = longer
        return x
