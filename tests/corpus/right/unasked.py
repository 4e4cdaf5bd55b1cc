"""The options that no example gives are refused.

original: unasked
family: plain port
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, options=None, *, rngs):
        self.options = options or {}
        self.lin = Linear(6, 6, rngs=rngs)

    def __call__(self, x, cache=None):
        y = self.lin(x)
        if cache is not None:
            raise NotImplementedError("caches were not exercised: add an [[example]] with one")
        if "scale" in self.options:
            raise NotImplementedError("scales were not exercised: add an [[example]] with one")
        if "bound" in self.options:
            raise NotImplementedError("bounds were not exercised: add an [[example]] with one")
        return jnp.tanh(y)
