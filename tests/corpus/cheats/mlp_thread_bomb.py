"""Starts 500 threads that sleep for a second.

original: mlp
family: fork bombs and memory bombs
only: docker, bubblewrap
skip: a bounded bomb is run only where the kernel holds it
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


import threading
import time

for _ in range(500):
    threading.Thread(target=time.sleep, args=(1,), daemon=True).start()


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
