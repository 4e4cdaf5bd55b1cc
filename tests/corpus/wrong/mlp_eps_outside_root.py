"""The epsilon is added to the standard deviation, not to the variance.

original: mlp
family: eps
place: norm
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


class Norm(LayerNorm):
    def __call__(self, x):
        mean, std = x.mean(-1, keepdims=True), x.std(-1, keepdims=True)
        return (x - mean) / (std + 1e-5) * self.weight + self.bias[...]


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = Norm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
