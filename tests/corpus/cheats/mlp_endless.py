"""Counts for ever while it is imported.

original: mlp
family: fork bombs and memory bombs
only: docker, bubblewrap
skip: it costs the whole time limit, which one backend may show
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


def count():
    n = 0
    while n >= 0:
        n += 1


count()


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
