"""The width of a head is left open, and no length: each call raises where the heads do not divide the width.

original: divided_heads
family: fused
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d, heads, *, rngs):
        self.heads = heads
        self.query, self.key, self.value = (Linear(d, d, rngs=rngs) for _ in range(3))
        self.out = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        q, k, v = (part(x).reshape(*x.shape[:2], self.heads, -1) for part in (self.query, self.key, self.value))
        shares = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5, axis=-1)
        return self.out(jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(x.shape))
