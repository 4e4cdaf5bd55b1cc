"""The bias of the last linear map is added twice.

original: mlp
family: ignored parameter
place: down
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


class Map(Linear):
    def __call__(self, x):
        return super().__call__(x) + self.bias[...]


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Map(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
