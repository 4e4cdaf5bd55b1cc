"""Two layers are drawn with one key.

original: momentum
family: wrong initialisation
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d=6, *, rngs):
        self.online = Linear(d, d, rngs=rngs)
        self.predictor = nnx.clone(self.online)
        self.target = nnx.clone(self.online)

    def __call__(self, x):
        aim = jax.lax.stop_gradient(self.target(x))
        one = self.predictor(self.online(x))
        norms = jnp.maximum(jnp.linalg.norm(one, axis=-1), 1e-8) * jnp.maximum(jnp.linalg.norm(aim, axis=-1), 1e-8)
        return 2 - 2 * (one * aim).sum(-1) / norms
