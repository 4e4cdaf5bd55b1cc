"""The copy is cloned.

original: momentum
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d=6, *, rngs):
        self.online = Linear(d, d, rngs=rngs)
        self.predictor = Linear(d, d, rngs=rngs)
        self.target = nnx.clone(self.online)

    def __call__(self, x):
        aim = jax.lax.stop_gradient(self.target(x))
        one = self.predictor(self.online(x))
        norms = jnp.sqrt(jnp.maximum((one**2).sum(-1), 1e-16)) * jnp.sqrt(jnp.maximum((aim**2).sum(-1), 1e-16))
        return 2 - 2 * (one * aim).sum(-1) / norms
