"""The product is summed in two halves of the hidden layer.

original: mlp
family: reassociated
"""

from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        h = self.act(self.up(self.norm(x)))
        half = h.shape[-1] // 2
        w = self.down.weight.T
        return (h[..., :half] @ w[:half] + self.down.bias[...] + x) + h[..., half:] @ w[half:]
