"""Changes the class that all parameters have.

original: mlp
family: patching comparison or timing functions
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import GELU, LayerNorm, Linear


type.__setattr__(nnx.Param, "get_value", lambda self: jnp.zeros(8))


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.norm = LayerNorm(d, rngs=rngs)
        self.up = Linear(d, d, rngs=rngs)
        self.act = GELU()
        self.down = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        return x
