"""Streams of the constructor's own seed.

original: seeded_constructor
family: plain port
"""

import jax
from flax import nnx


class M(nnx.Module):
    def __init__(self, inputs, seed, *, rngs: nnx.Rngs):
        rngs = nnx.Rngs(seed)
        self.weight = nnx.Param(jax.random.uniform(rngs.params(), (inputs, 40), minval=-0.2, maxval=0.2))

    def __call__(self, x):
        return x @ self.weight[...]
