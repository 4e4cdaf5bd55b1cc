"""From the second call on the answer is another one, in evaluation only.

original: mlp
family: eval-only code
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)
        self.calls = nnx.Cache(jnp.zeros(()))
        self.deterministic = False

    def __call__(self, x):
        y = self.down(self.act(self.up(self.norm(x))))
        if not self.deterministic:
            return x + y
        self.calls[...] += 1
        return x + jnp.where(self.calls[...] > 1, 1.01, 1.0) * y
