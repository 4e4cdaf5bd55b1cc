"""The block is written for one row and vmapped over the batch.

original: mlp
family: vmapped
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
        return jax.vmap(lambda row: row + self.down(self.act(self.up(self.norm(row)))))(x)
