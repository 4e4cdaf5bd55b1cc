"""Batch norm by its formula, layer after layer.

original: kinks
family: ill-conditioned
"""

import jax
import jax.numpy as jnp
from flax import nnx

from nnx_layers_jax import Linear


class BatchNorm(nnx.Module):
    def __init__(self, d):
        self.weight, self.bias = nnx.Param(jnp.ones(d)), nnx.Param(jnp.zeros(d))
        self.running_mean, self.running_var = nnx.BatchStat(jnp.zeros(d)), nnx.BatchStat(jnp.ones(d))
        self.num_batches_tracked = nnx.BatchStat(jnp.zeros((), jnp.int32))
        self.use_running_average = False

    def __call__(self, x):
        if self.use_running_average:
            mean, var = self.running_mean[...], self.running_var[...]
        else:
            mean, var, n = x.mean(0), x.var(0), x.shape[0]
            self.running_mean[...] = 0.9 * self.running_mean[...] + 0.1 * mean
            self.running_var[...] = 0.9 * self.running_var[...] + 0.1 * var * (n / (n - 1))
            self.num_batches_tracked[...] += 1
        y = (x - mean) * jax.lax.rsqrt(var + 1e-5)
        return y * self.weight[...] + self.bias[...]


class Layer(nnx.Module):
    def __init__(self, d, rngs):
        self.fc = Linear(d, d, rngs=rngs)
        self.norm = BatchNorm(d)

    def __call__(self, x):
        return jax.nn.relu(self.norm(self.fc(x)))


class M(nnx.Module):
    def __init__(self, d=32, depth=10, *, rngs: nnx.Rngs):
        self.layers = nnx.List([Layer(d, rngs) for _ in range(depth)])
        self.head = Linear(d, 4, rngs=rngs)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
