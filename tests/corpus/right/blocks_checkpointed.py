"""Each layer is computed again in the backward pass.

original: blocks
family: other but equal formulas
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
        @jax.checkpoint
        def block(key, weight, bias, x):
            h = jnp.tanh(x @ weight.T + bias)
            if not self.deterministic:
                h = jnp.where(jax.random.bernoulli(key, 0.7, h.shape), h / 0.7, 0.0)
            return x + h

        keys = jax.random.split(self.rngs(), len(self.layers))
        for key, layer in zip(keys, self.layers):
            x = block(key, layer.weight[...], layer.bias[...], x)
        return x
