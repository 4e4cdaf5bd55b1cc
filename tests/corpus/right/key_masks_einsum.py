"""Scores and sums by einsum; integers become booleans first.

original: key_masks
family: reassociated
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, width, heads=2, *, rngs):
        self.heads = heads
        self.qkv = Linear(width, 3 * width, rngs=rngs)
        self.out = Linear(width, width, rngs=rngs)

    def __call__(self, x, mask=None):
        b, n, c = x.shape
        q, k, v = jnp.moveaxis(self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads), 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (c // self.heads) ** 0.5
        chooses = mask is not None and not jnp.issubdtype(mask.dtype, jnp.floating)
        if chooses:
            scores = jnp.where(mask.astype(bool)[:, None, None], scores, jnp.finfo(scores.dtype).min)
        elif mask is not None:
            scores = scores + mask[:, None, None]
        weights = jax.nn.softmax(scores.astype(jnp.float32)).astype(q.dtype)
        y = self.out(jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, n, c))
        return y * mask[..., None].astype(y.dtype) if chooses else y
