"""RMS norm divides by a root instead of multiplying by its reciprocal.

original: norms
family: other but equal formulas
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import GroupNorm, InstanceNorm1d, LayerNorm


class RMS(nnx.Module):
    def __init__(self, d, eps=1e-6):
        self.eps = eps
        self.weight = nnx.Param(jnp.ones(d))

    def __call__(self, x):
        return self.weight[...] * x / jnp.sqrt(jnp.einsum("...i,...i->...", x, x)[..., None] / x.shape[-1] + self.eps)


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.group = GroupNorm(3, 6, rngs=rngs)
        self.instance = InstanceNorm1d(6, affine=True, rngs=rngs)
        self.layer = LayerNorm([6, 7], rngs=rngs)
        self.rms = RMS(7)

    def __call__(self, x):
        h = 0.1 * self.group(x) + x
        h = 0.1 * self.instance(h) + x
        h = 0.1 * self.layer(h) + x
        return self.rms(h)
