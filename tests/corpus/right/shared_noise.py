"""Chosen, not multiplied.

original: shared_noise
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, rate, *, rngs):
        self.rate = rate
        self.deterministic = False
        self.rngs = rngs

    def __call__(self, x):
        if self.deterministic or not self.rate:
            return x
        kept = jax.random.bernoulli(self.rngs(), 1 - self.rate, (1, *x.shape[1:]))
        scale = kept.astype(x.dtype) / (1 - self.rate)
        return x * scale
