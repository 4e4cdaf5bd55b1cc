"""The plain port.

original: key_masks
family: plain port
"""

import math

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
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).transpose(2, 0, 3, 1, 4)
        scores = q @ jnp.swapaxes(k, -2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            if jnp.issubdtype(mask.dtype, jnp.floating):
                scores = scores + mask[:, None, None, :]
            else:
                scores = jnp.where(mask[:, None, None, :] == 0, jnp.finfo(scores.dtype).min, scores)
        weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(q.dtype)
        y = self.out(jnp.swapaxes(weights @ v, 1, 2).reshape(b, n, c))
        if mask is not None and not jnp.issubdtype(mask.dtype, jnp.floating):
            y = y * mask[:, :, None].astype(y.dtype)
        return y
