"""The moments are those of `jnp`, in float32.

original: upcast
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


def normalised(x, weight, bias, eps):
    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(-1, keepdims=True)
    scaled = centred / jnp.sqrt(jnp.var(wide, axis=-1, keepdims=True) + eps)
    return scaled.astype(x.dtype) * weight + bias


class Norm(nnx.Module):
    def __init__(self, width, eps=1e-6):
        self.eps = eps
        self.weight = nnx.Param(jnp.ones(width))
        self.bias = nnx.Param(jnp.zeros(width))

    def __call__(self, x):
        return normalised(x, self.weight[...], self.bias[...], self.eps)


class M(nnx.Module):
    def __init__(self, width, eps=1e-6, *, rngs):
        self.norm = Norm(width, eps)
        self.proj = Linear(width, 2 * width, rngs=rngs)

    def __call__(self, x):
        y = self.proj(self.norm(x))
        width = x.shape[-1]
        return x + y[..., :width] * jax.nn.sigmoid(y[..., width:])
