"""The residual is summed in bfloat16 and widened after.

original: half
family: precision or output dtype
place: .
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import LayerNorm, Linear, linear


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.qkv = Linear(d, 3 * d, rngs=rngs)
        self.out = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        half = jnp.bfloat16
        h = self.norm(x).astype(half)
        q, k, v = jnp.split(linear(h, self.qkv.weight.astype(half), self.qkv.bias[...].astype(half)), 3, axis=-1)
        p = jax.nn.softmax((q @ k.swapaxes(1, 2)).astype(jnp.float32) * 8**-0.5, axis=-1).astype(half)
        y = linear(p @ v, self.out.weight.astype(half), self.out.bias[...].astype(half))
        return (x.astype(half) + y).astype(jnp.float32), y
