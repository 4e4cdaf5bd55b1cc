"""`top_k` chooses, and Gumbel noise is made of exponential numbers.

original: choices
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = Linear(6, 6, rngs=rngs)
        self.rngs = rngs

    def __call__(self, x):
        y = self.fc(x)
        noisy = y + jax.random.gumbel(self.rngs(), y.shape)
        chosen = jax.lax.top_k(noisy, 2)[1]
        return chosen, jax.nn.softmax((y - jnp.log(jax.random.exponential(self.rngs(), y.shape))) / 0.7)
