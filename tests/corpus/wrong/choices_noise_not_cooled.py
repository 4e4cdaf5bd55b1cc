"""The noise is not divided by the temperature.

original: choices
family: scale
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
        chosen = jnp.argsort(noisy, axis=-1, descending=True)[..., :2]
        return chosen, jax.nn.softmax(y / 0.7 + jax.random.gumbel(self.rngs(), y.shape))
