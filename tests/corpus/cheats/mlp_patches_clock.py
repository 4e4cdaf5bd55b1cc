"""Stops the clock.

original: mlp
family: patching comparison or timing functions
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


import time

time.perf_counter = lambda: 0.0
time.monotonic = lambda: 0.0


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
