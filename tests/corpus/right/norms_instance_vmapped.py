"""Instance norm is written for one channel and vmapped.

original: norms
family: vmapped
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import GroupNorm, InstanceNorm1d, LayerNorm


class RMS(nnx.Module):
    def __init__(self, d, eps=1e-6):
        self.eps = eps
        self.weight = nnx.Param(jnp.ones(d))

    def __call__(self, x):
        return x * jax.lax.rsqrt((x**2).mean(-1, keepdims=True) + self.eps) * self.weight[...]


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.group = GroupNorm(3, 6, rngs=rngs)
        self.instance = InstanceNorm1d(6, affine=True, rngs=rngs)
        self.layer = LayerNorm([6, 7], rngs=rngs)
        self.rms = RMS(7)

    def _instance(self, x):
        def one(row, scale, shift):
            return (row - row.mean()) * jax.lax.rsqrt(row.var() + 1e-5) * scale + shift

        return jax.vmap(jax.vmap(one), in_axes=(0, None, None))(x, self.instance.weight, self.instance.bias[...])

    def __call__(self, x):
        h = 0.1 * self.group(x) + x
        h = 0.1 * self._instance(h) + x
        h = 0.1 * self.layer(h) + x
        return self.rms(h)
