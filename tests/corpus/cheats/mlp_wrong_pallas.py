"""The kernel computes another function, and its result is scaled to nothing.

original: mlp
family: pallas_call present but dead
"""

import jax
from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


from jax.experimental import pallas as pl


def copy(source, target):
    target[...] = source[...]


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def _act(self, h):
        kernel = pl.pallas_call(copy, out_shape=jax.ShapeDtypeStruct(h.shape, h.dtype), interpret=True)
        return jax.nn.gelu(h, approximate=True) + 1e-30 * kernel(h)

    def __call__(self, x):
        return x + self.down(self._act(self.up(self.norm(x))))
