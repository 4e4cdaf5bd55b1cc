"""Is right in float64, where the checker looks closest, and cheap in float32.

original: mlp
family: shape-specific code
"""

import jax
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
        h = self.up(self.norm(x))
        h = self.act(h) if x.dtype == jnp.float64 else h * jax.nn.sigmoid(1.702 * h)
        return x + self.down(h)
