"""The plain port.

original: unreached
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d=6, *, rngs):
        self.fixed = Linear(d, d, rngs=rngs)
        self.score = Linear(d, 1, rngs=rngs)
        self.out = Linear(d, d, rngs=rngs)

    def __call__(self, x):
        y = lax.stop_gradient(jnp.tanh(self.fixed(x)))
        return self.out(jnp.sum(jax.nn.softmax(self.score(x), axis=1) * y, axis=1))
