"""The plain port; the head is the embedding itself.

original: stacked_tower
family: plain port
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Dropout, Embedding, LayerNorm, Linear


class Layer(nnx.Module):
    def __init__(self, width, rate, *, rngs):
        self.up = Linear(width, 2 * width, rngs=rngs)
        self.down = Linear(2 * width, width, bias=False, rngs=rngs)
        self.drop = Dropout(rate, rngs=rngs)

    def __call__(self, x):
        return x + self.drop(self.down(jnp.tanh(self.up(x))))


class Head(nnx.Module):
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return x @ self.weight[...].T


class M(nnx.Module):
    def __init__(self, words, width, depth=3, rate=0.2, *, rngs):
        self.embed = Embedding(words, width, rngs=rngs)
        self.drop = Dropout(rate, rngs=rngs)
        self.layers = nnx.List([Layer(width, rate, rngs=rngs) for _ in range(depth)])
        self.norm = LayerNorm(width, rngs=rngs)
        self.head = Head(self.embed.embedding)

    def encode(self, ids):
        x = self.drop(self.embed(ids))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def __call__(self, ids):
        return self.head(self.encode(ids))
