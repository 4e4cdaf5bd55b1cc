"""Asks for what is constant to be computed while it is traced: nothing here is, so that all of it is compiled.

original: mlp
family: other but equal formulas
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
        with jax.ensure_compile_time_eval():
            h = self.down(self.act(self.up(self.norm(x))))
        return x + h
