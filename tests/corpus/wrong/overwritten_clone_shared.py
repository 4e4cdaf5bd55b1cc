"""The change reaches what was copied before it.

original: overwritten
family: views
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
        skip = h + h
        shifted = skip - 0.5
        y = skip - 0.25
        y = y.at[:, :3].multiply(0.5)
        y = y.at[:, 3:].multiply(2.0)
        y = y.at[:, 1].set(y[:, 2])
        y = y.at[:, 2].set(y[:, 1])
        y = jax.nn.leaky_relu(y, 0.1)
        z = self.act[1](y)
        positive = jax.nn.relu(shifted)
        return z + y + positive + positive + skip - 0.25
