"""The unbiased variance counts what the example has.

original: batch_norm
family: constants
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Conv2d


class BatchNorm(nnx.Module):
    def __init__(self, d):
        self.weight = nnx.Param(jnp.ones(d))
        self.bias = nnx.Param(jnp.zeros(d))
        self.running_mean = nnx.BatchStat(jnp.zeros(d))
        self.running_var = nnx.BatchStat(jnp.ones(d))
        self.num_batches_tracked = nnx.BatchStat(jnp.zeros((), int))
        self.use_running_average = False

    def __call__(self, x):
        if self.use_running_average:
            mean, var = self.running_mean[...], self.running_var[...]
        else:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            n = 60
            self.running_mean[...] = 0.9 * self.running_mean[...] + 0.1 * mean
            self.running_var[...] = 0.9 * self.running_var[...] + 0.1 * var * (n / (n - 1))
            self.num_batches_tracked[...] += 1
        y = (x - mean[:, None, None]) / jnp.sqrt(var[:, None, None] + 1e-5)
        return y * self.weight[...][:, None, None] + self.bias[...][:, None, None]


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.conv = Conv2d(3, 4, 3, padding=1, bias=False, rngs=rngs)
        self.norm = BatchNorm(4)

    def __call__(self, x):
        return jax.nn.relu(self.norm(self.conv(x))).mean((2, 3))
