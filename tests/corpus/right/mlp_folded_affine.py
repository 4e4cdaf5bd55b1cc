"""The norm's scale and shift are folded into the first linear map.

original: mlp
family: fused
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

    def _up(self, x):
        centred = x - x.mean(-1, keepdims=True)
        normed = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        weight = self.norm.weight[:, None] * self.up.weight.T
        return normed @ weight + (self.norm.bias[...] @ self.up.weight.T + self.up.bias[...])

    def __call__(self, x):
        return x + self.down(self.act(self._up(x)))
