"""A layer that is left out is not computed, and draws nothing.

original: layer_drop
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class Layer(nnx.Module):
    def __init__(self, d, *, rngs):
        self.fc = Linear(d, d, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x):
        return x + self.drop(jnp.tanh(self.fc(x)))


def same(module, x):
    return x


def run(layer, x):
    return layer(x)


def noisy(module, x):
    return x + 0.1 * jax.random.normal(module.rngs(), x.shape, x.dtype)


class M(nnx.Module):
    def __init__(self, d=8, n=3, p=0.3, *, rngs):
        self.layers = nnx.List([Layer(d, rngs=rngs) for _ in range(n)])
        self.p = p
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        for layer in self.layers:
            if self.deterministic:
                x = layer(x)
            else:
                x = nnx.cond(jax.random.uniform(self.rngs()) < self.p, same, run, layer, x)
        if not self.deterministic:
            x = nnx.cond(jax.random.uniform(self.rngs()) < 0.5, noisy, same, self, x)
        return x
