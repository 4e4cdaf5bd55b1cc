"""A square weight is used transposed.

original: mlp
family: wrong axis where sizes agree
place: up
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


class Map(Linear):
    def __call__(self, x):
        return x @ self.weight + self.bias[...]


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Map(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
