"""The second dropout of a block is missing.

original: gpt
family: dropped dropout or dropout scale
place: h.0
"""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Dropout, Embedding, LayerNorm, Linear


class Block(nnx.Module):
    def __init__(self, d, heads, p, *, rngs):
        self.heads = heads
        self.ln_1, self.ln_2 = LayerNorm(d, rngs=rngs), LayerNorm(d, rngs=rngs)
        self.attn, self.proj = Linear(d, 3 * d, rngs=rngs), Linear(d, d, rngs=rngs)
        self.fc, self.out = Linear(d, 2 * d, rngs=rngs), Linear(2 * d, d, rngs=rngs)
        self.drop = Dropout(p, rngs=rngs)

    def __call__(self, x):
        B, T, C = x.shape
        q, k, v = (t.reshape(B, T, self.heads, -1).swapaxes(1, 2) for t in jnp.split(self.attn(self.ln_1(x)), 3, axis=-1))
        att = q @ k.swapaxes(-2, -1) / math.sqrt(C // self.heads)
        att = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((T, T), bool)), att, -jnp.inf), axis=-1)
        y = att @ v
        x = x + self.drop(self.proj(y.swapaxes(1, 2).reshape(B, T, C)))
        return x + self.out(jax.nn.gelu(self.fc(self.ln_2(x)), approximate=False))


class Head(nnx.Module):
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return x @ self.weight[...].T


class M(nnx.Module):
    def __init__(self, n=2, d=8, heads=2, vocab=24, p=0.1, *, rngs):
        self.wte, self.wpe = Embedding(vocab, d, rngs=rngs), Embedding(16, d, rngs=rngs)
        self.h = nnx.List([Block(d, heads, p, rngs=rngs) for _ in range(n)])
        self.ln_f = LayerNorm(d, rngs=rngs)
        self.head = Head(self.wte.embedding)
        self.wpe.weight = 0.02 * jax.random.normal(rngs.params(), (16, d))

    def __call__(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(jnp.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln_f(x))
        if targets is None:
            return logits, None
        flat = jax.nn.log_softmax(logits.reshape(-1, logits.shape[-1]), axis=-1)
        return logits, -jnp.take_along_axis(flat, targets.reshape(-1, 1), axis=-1).mean()
