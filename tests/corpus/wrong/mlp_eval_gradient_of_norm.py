"""In evaluation the norm's statistics are detached.

original: mlp
family: dropped or added detach
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
        if not self.deterministic:
            return x + self.down(self.act(self.up(self.norm(x))))
        mean = jax.lax.stop_gradient(x.mean(-1, keepdims=True))
        rstd = jax.lax.stop_gradient(jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5))
        h = (x - mean) * rstd * self.norm.scale[...] + self.norm.bias[...]
        return x + self.down(self.act(self.up(h)))
