"""The number of rows is the default.

original: hashed
family: ignored parameter
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Embedding


class M(nnx.Module):
    def __init__(self, d=6, letters=120, rows=211, *, rngs):
        self.letters = Embedding(letters, d, rngs=rngs)
        self.words = Embedding(rows, d, rngs=rngs)
        self.rows = rows

    def __call__(self, ids):
        key = jnp.zeros_like(ids[:, 0])
        for place in range(ids.shape[1]):
            key = (key * 256 % 1000003 * 256 + key + ids[:, place]) % 1000003
        return self.words(key % 211) + self.letters(ids).sum(1)
