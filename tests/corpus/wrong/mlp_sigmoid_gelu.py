"""The sigmoid approximation of GELU, x * sigmoid(1.702 x).

original: mlp
family: approximate functions
place: .
"""

import jax
from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down((lambda h: h * jax.nn.sigmoid(1.702 * h))(self.up(self.norm(x))))
