"""The linear maps are einsums.

original: mlp
family: other but equal formulas
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

    def __call__(self, x):
        return (
            x
            + jnp.einsum(
                "...i,oi->...o", self.act(jnp.einsum("oi,...i->...o", self.up.weight, self.norm(x)) + self.up.bias[...]), self.down.weight
            )
            + self.down.bias[...]
        )
