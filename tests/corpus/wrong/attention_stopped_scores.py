"""No gradient flows through the attention weights, of both blocks: the last one is the first that gradients come to.

original: attention
family: dropped or added detach
place: blocks.1
"""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class Attention(nnx.Module):
    def __init__(self, d, heads, *, rngs):
        self.heads = heads
        self.q = Linear(d, d, rngs=rngs)
        self.k = Linear(d, d, rngs=rngs)
        self.v = Linear(d, d, rngs=rngs)
        self.proj = Linear(d, d, rngs=rngs)
        self.mask = nnx.Variable(jnp.tril(jnp.ones((16, 16))))

    def __call__(self, x, keep=None):
        B, T, C = x.shape
        q = self.q(x).reshape(B, T, self.heads, C // self.heads).swapaxes(1, 2)
        k = self.k(x).reshape(B, T, self.heads, C // self.heads).swapaxes(1, 2)
        v = self.v(x).reshape(B, T, self.heads, C // self.heads).swapaxes(1, 2)
        att = q @ k.swapaxes(-2, -1) / math.sqrt(C // self.heads)
        att = jnp.where(self.mask[...][:T, :T] == 0, -jnp.inf, att)
        if keep is not None:
            att = jnp.where(keep[:, None, None, :], att, -1e4)
        y = jax.lax.stop_gradient(jax.nn.softmax(att, axis=-1)) @ v
        return self.proj(y.swapaxes(1, 2).reshape(B, T, C))


class M(nnx.Module):
    def __init__(self, d=8, heads=2, *, rngs):
        self.blocks = nnx.List([Attention(d, heads, rngs=rngs) for _ in range(2)])

    def __call__(self, x, keep=None):
        for block in self.blocks:
            x = x + block(x, keep)
        return x
