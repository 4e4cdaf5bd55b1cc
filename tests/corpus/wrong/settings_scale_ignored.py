"""The scale is the default one.

original: settings
family: ignored parameter
"""

import jax
from flax import nnx
from nnx_layers_jax import LayerNorm, Linear


class Block(nnx.Module):
    def __init__(self, width, heads, eps, rate, bias, gated, *, rngs):
        self.heads = heads
        self.gated = gated
        self.norm = LayerNorm(width, eps=eps, rngs=rngs)
        self.mix = Linear(width, 2 * width if gated else width, bias=bias, rngs=rngs)
        self.drop = nnx.Dropout(rate, rngs=rngs)

    def __call__(self, x):
        batch, length, width = x.shape
        y = self.mix(self.norm(x))
        if self.gated:
            y = y[..., :width] * jax.nn.sigmoid(y[..., width:])
        y = y.reshape(batch, length, self.heads, width // self.heads)
        y = jax.nn.softmax(y, axis=2).reshape(batch, length, width)
        return x + self.drop(y)


class M(nnx.Module):
    def __init__(self, width, heads=1, depth=1, eps=1e-3, rate=0.1, bias=True, gated=True, scale=2.0, *, rngs):
        self.scale = scale
        self.blocks = nnx.List([Block(width, heads, eps, rate, bias, gated, rngs=rngs) for _ in range(depth)])
        self.head = Linear(width, width, bias=bias, rngs=rngs)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x) / 2.0
