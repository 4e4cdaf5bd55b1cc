"""What the small number is added to stands apart from the one.

original: small_terms
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, width, *, rngs: nnx.Rngs):
        self.critic = Linear(width, 1, rngs=rngs)

    def __call__(self, x):
        p = jax.nn.sigmoid(self.critic(x))
        q = jax.lax.optimization_barrier(1 - p)
        return jnp.log(p + 1e-8), jnp.log(q + 1e-8)
