"""The hidden values are clamped for stability, which torch does not do.

original: mlp
family: clamp
place: .
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(jnp.clip(self.act(self.up(self.norm(x))), -4.0, 4.0))
