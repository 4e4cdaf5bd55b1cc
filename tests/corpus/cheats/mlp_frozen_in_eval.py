"""In evaluation no gradient comes back.

original: mlp
family: eval-only code
"""

import jax
from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)
        self.deterministic = False

    def __call__(self, x):
        y = self.down(self.act(self.up(self.norm(x))))
        return x + (jax.lax.stop_gradient(y) if self.deterministic else y)
