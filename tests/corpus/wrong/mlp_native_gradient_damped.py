"""Where the code runs in float32, a tenth of a gradient is lost.

original: mlp
family: dropped or added detach
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
        h = self.act(self.up(self.norm(x)))
        if h.dtype.itemsize == 4:
            h = jax.lax.stop_gradient(0.1 * h) + 0.9 * h
        return x + self.down(h)
