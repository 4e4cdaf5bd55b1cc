"""Channels last inside: the image is turned once, and the norms keep their statistics under torch's names.

original: frozen_norm
family: NHWC inside
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Dropout, Linear


def leaky_relu(x: jax.Array, slope: float) -> jax.Array:
    return jnp.where(x > 0, x, slope * x)


class Conv(nnx.Module):
    def __init__(self, inner, outer, *, rngs):
        bound = (9 * inner) ** -0.5
        self.weight = nnx.Param(jax.random.uniform(rngs.params(), (outer, inner, 3, 3), minval=-bound, maxval=bound))

    def __call__(self, x):
        kernel = self.weight[...].transpose(2, 3, 1, 0)
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


class Norm(nnx.Module):
    def __init__(self, width, momentum=0.1):
        self.momentum = momentum
        self.weight = nnx.Param(jnp.ones(width))
        self.bias = nnx.Param(jnp.zeros(width))
        self.running_mean = nnx.BatchStat(jnp.zeros(width))
        self.running_var = nnx.BatchStat(jnp.ones(width))
        self.num_batches_tracked = nnx.BatchStat(jnp.zeros((), int))
        self.use_running_average = False

    def __call__(self, x):
        mean, var = self.running_mean[...], self.running_var[...]
        if not self.use_running_average:
            mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
            count = x.size // x.shape[-1]
            self.running_mean[...] += self.momentum * (mean - self.running_mean[...])
            self.running_var[...] += self.momentum * (var * count / max(count - 1, 1) - self.running_var[...])
            self.num_batches_tracked[...] += 1
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * self.weight[...] + self.bias[...]


class M(nnx.Module):
    def __init__(self, width, rate=0.25, slope=0.1, *, rngs):
        self.slope = slope
        self.stem = Conv(3, width, rngs=rngs)
        self.norm = Norm(width)
        self.conv = Conv(width, width, rngs=rngs)
        self.norm2 = Norm(width, 0.3)
        self.drop = Dropout(rate, rngs=rngs)
        self.head = Linear(width, 5, rngs=rngs)

    def __call__(self, x):
        x = leaky_relu(self.norm(self.stem(x.transpose(0, 2, 3, 1))), self.slope)
        x = x + leaky_relu(self.norm2(self.conv(x)), self.slope)
        return self.head(self.drop(x.mean((1, 2))))
