"""One layer drops the weights and the result of a block.

original: shared_dropout
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Dropout, Linear


class Block(nnx.Module):
    def __init__(self, width, heads, rate, *, rngs):
        self.heads = heads
        self.qkv = Linear(width, 3 * width, rngs=rngs)
        self.proj = Linear(width, width, rngs=rngs)
        self.drop = Dropout(rate, rngs=rngs)

    def __call__(self, x):
        b, t, c = x.shape
        q, k, v = (jnp.swapaxes(part.reshape(b, t, self.heads, -1), 1, 2) for part in jnp.split(self.qkv(x), 3, axis=-1))
        weights = jax.nn.softmax(q @ jnp.swapaxes(k, -2, -1) * (c // self.heads) ** -0.5, axis=-1)
        y = self.drop(weights) @ v
        return x + self.drop(self.proj(jnp.swapaxes(y, 1, 2).reshape(b, t, c)))


class M(nnx.Module):
    def __init__(self, width, heads, rate=0.2, *, rngs):
        self.block = Block(width, heads, rate, rngs=rngs)
        self.last = Dropout(rate, rngs=rngs)

    def __call__(self, x):
        return self.last(jnp.tanh(self.block(x)))
