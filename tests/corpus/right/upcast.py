"""The plain port.

original: upcast
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class Norm(nnx.Module):
    def __init__(self, width, eps=1e-6):
        self.eps = eps
        self.weight = nnx.Param(jnp.ones(width))
        self.bias = nnx.Param(jnp.zeros(width))

    def __call__(self, x):
        dtype = x.dtype
        x = x.astype(jnp.float32)
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
        x = (x - mean) * jax.lax.rsqrt(variance + self.eps)
        return self.weight[...] * x.astype(dtype) + self.bias[...]


class M(nnx.Module):
    def __init__(self, width, eps=1e-6, *, rngs):
        self.norm = Norm(width, eps)
        self.proj = Linear(width, 2 * width, rngs=rngs)

    def __call__(self, x):
        a, b = jnp.split(self.proj(self.norm(x)), 2, axis=-1)
        return x + a * jax.nn.sigmoid(b)
