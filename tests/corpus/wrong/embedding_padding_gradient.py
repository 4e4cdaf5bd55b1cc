"""The padding row receives gradients.

original: embedding
family: dropped or added detach
place: tokens
"""

import jax
import jax.numpy as jnp
from flax import nnx


class Table(nnx.Module):
    def __init__(self, rows, d, padding=None, *, rngs):
        self.padding = padding
        value = jax.random.normal(rngs.params(), (rows, d))
        self.weight = nnx.Param(value if padding is None else value.at[padding].set(0.0))

    def __call__(self, ids):
        weight = self.weight[...]
        if self.padding is not None and self.padding > 0:
            weight = weight.at[self.padding].set(jax.lax.stop_gradient(weight[self.padding]))
        return weight[ids]


class Head(nnx.Module):
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return x @ self.weight[...].T


class M(nnx.Module):
    def __init__(self, vocab=5, d=4, *, rngs):
        self.tokens = Table(vocab, d, 0, rngs=rngs)
        self.positions = Table(16, d, rngs=rngs)
        self.head = Head(self.tokens.weight)

    def __call__(self, ids):
        x = self.tokens(ids) + self.positions(jnp.arange(ids.shape[1]))
        mask = (ids != 0)[..., None]
        mean = (x * mask).sum(1) / jnp.maximum(mask.sum(1), 1)
        return self.head(mean), x
