"""Starts 200 processes that end by themselves.

original: mlp
family: fork bombs and memory bombs
only: docker, bubblewrap
skip: a bounded bomb is run only where the kernel holds it
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


import os
import time

for _ in range(200):
    if os.fork() == 0:
        time.sleep(2)
        os._exit(0)


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
