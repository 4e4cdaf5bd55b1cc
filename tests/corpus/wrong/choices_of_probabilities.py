"""Noise is added to probabilities, not to their logarithms.

original: choices
family: dropped terms
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        self.rngs = rngs

    def __call__(self, x):
        y = self.fc(x)
        noisy = jax.nn.softmax(y) + jax.random.gumbel(self.rngs(), y.shape)
        chosen = jnp.argsort(noisy, axis=-1, descending=True)[..., :2]
        return chosen, jax.nn.softmax((y + jax.random.gumbel(self.rngs(), y.shape)) / 0.7)
