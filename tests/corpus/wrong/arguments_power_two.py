"""The power is its default.

original: arguments
family: ignored parameter
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)

    def __call__(self, x, temperature=1.0, *, power=2, causal=True, weights=(0.5, 2.0)):
        y = jnp.tanh(self.fc(x) / temperature) * jnp.tanh(self.fc(x) / temperature)
        y = weights[0] * y + weights[1] * x
        return jnp.cumsum(y, 0) if causal else y
