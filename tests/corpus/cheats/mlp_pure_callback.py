"""Computes on the host in a pure_callback.

original: mlp
family: callbacks to the host
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
        y = x + self.down(self.act(self.up(self.norm(x))))
        return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(y.shape, y.dtype), y)
