"""Inherits from the original beside nnx.Module.

original: mlp
family: importing or subclassing the original
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


import model


class M(nnx.Module, model.M):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
