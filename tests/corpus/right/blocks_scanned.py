"""The layers are a scan, each step with a key of its own.

original: blocks
family: scanned
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.layers = nnx.List([Linear(6, 6, rngs=rngs) for _ in range(3)])
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        weights = jnp.stack([layer.weight[...] for layer in self.layers])
        biases = jnp.stack([layer.bias[...] for layer in self.layers])
        keys = jax.random.split(self.rngs(), len(self.layers))

        def step(x, each):
            key, weight, bias = each
            h = jnp.tanh(x @ weight.T + bias)
            if not self.deterministic:
                h = jnp.where(jax.random.bernoulli(key, 0.7, h.shape), h / 0.7, 0.0)
            return x + h, None

        return jax.lax.scan(step, x, (keys, weights, biases))[0]
