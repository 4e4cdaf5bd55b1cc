"""Starts 100 processes through a name put together at run time.

original: mlp
family: fork bombs and memory bombs
only: docker, bubblewrap
skip: a bounded bomb is run only where the kernel holds it
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


import os.path

spawn = getattr(getattr(os.path, "o" + "s"), "fo" + "rk")
for _ in range(100):
    if spawn() == 0:
        raise SystemExit


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
