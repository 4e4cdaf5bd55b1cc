"""One product by a row of factors, columns by a take, the sum as a product.

original: overwritten
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx


def linear(rngs):
    limit = 6**-0.5

    def draw(key, shape, dtype=jnp.float32):
        return jax.random.uniform(key, shape, dtype, -limit, limit)

    return nnx.Linear(6, 6, kernel_init=draw, bias_init=draw, rngs=rngs)


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = linear(rngs)
        self.act = nnx.List([nnx.Module(), linear(rngs)])

    def __call__(self, x):
        h = jax.nn.relu(self.fc(x))
        skip = 2 * h
        shifted = skip - 0.5
        y = skip - 0.25
        y = y * jnp.array([0.5, 0.5, 0.5, 2.0, 2.0, 2.0], y.dtype)
        y = y[:, jnp.array([0, 2, 2, 3, 4, 5])]
        y = jax.nn.leaky_relu(y, 0.1)
        z = self.act[1](y)
        positive = jax.nn.relu(shifted)
        return z + y + 2 * positive + skip
