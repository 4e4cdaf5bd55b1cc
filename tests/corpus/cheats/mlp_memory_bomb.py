"""Takes 8 GB, one at a time.

original: mlp
family: fork bombs and memory bombs
only: docker, bubblewrap
skip: a bounded bomb is run only where the kernel holds it
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


HELD = [jnp.ones((1 << 28,), jnp.float32) for _ in range(8)]


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x)))) + HELD[0][0] - 1
