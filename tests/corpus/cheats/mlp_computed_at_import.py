"""Compiles at import for the recorded shape and calls the result.

original: mlp
family: work moved outside jit
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


COMPILED = jax.jit(lambda h: jax.nn.gelu(h, approximate=False)).lower(jnp.zeros((4, 8))).compile()


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(COMPILED(self.up(self.norm(x))))
