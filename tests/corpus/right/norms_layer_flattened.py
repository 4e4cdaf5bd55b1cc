"""Layer norm over two axes as one over the flattened axis.

original: norms
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import GroupNorm, InstanceNorm1d, LayerNorm, layer_norm


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

    def __call__(self, x):
        h = 0.1 * self.group(x) + x
        h = 0.1 * self.instance(h) + x
        h = (
            0.1
            * layer_norm(h.reshape(-1, 42), [42], self.layer.weight.reshape(-1), self.layer.bias[...].reshape(-1), 1e-5).reshape(h.shape)
            + x
        )
        return self.rms(h)
