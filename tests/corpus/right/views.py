"""The softmax by its own function, and the guard by a maximum.

original: views
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, temperature, *, rngs):
        self.temperature = temperature
        self.fc = Linear(6, 6, rngs=rngs)

    def __call__(self, x, labels):
        count, views = x.shape[:2]
        y = self.fc(x)
        square = (y**2).sum(-1, keepdims=True)
        z = y / jnp.maximum(jnp.sqrt(jnp.where(square > 0, square, 1.0)) * (square > 0), 1e-12)
        z = z.reshape(count * views, -1)
        labels = jnp.repeat(labels, views)
        itself = jnp.eye(len(z), dtype=bool)
        log_shares = jax.nn.log_softmax(jnp.where(itself, -jnp.inf, z @ z.T / self.temperature), axis=-1)
        pairs = (labels[:, None] == labels) & ~itself
        number = pairs.sum(-1)
        return -(jnp.where(pairs, log_shares, 0).sum(-1) / jnp.maximum(number, 1)).mean()
