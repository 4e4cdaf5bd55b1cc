"""Hard shrink keeps values of exactly lambda.

original: activations
family: comparison
place: .
"""

import jax
import jax.numpy as jnp
from flax import nnx


class PReLU(nnx.Module):
    def __init__(self):
        self.weight = nnx.Param(jnp.full((1,), 0.3))

    def __call__(self, x):
        return jnp.where(x >= 0, x, self.weight[...] * x)


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.prelu = PReLU()

    def __call__(self, x):
        first, second = jnp.split(x, 2, axis=-1)
        return (
            jnp.clip(x, -2.0, 2.5),
            x * jnp.clip(x + 3, 0, 6) / 6,
            jnp.clip(x / 6 + 0.5, 0, 1),
            jnp.where(2 * x > 20, x, jax.nn.softplus(2 * x) / 2),
            jnp.where(x > 0, x, 0.5 * jnp.expm1(jnp.where(x > 0, 0.0, x))),
            jax.nn.celu(x, 0.5),
            jax.nn.selu(x),
            x * jnp.tanh(jax.nn.softplus(x)),
            jnp.where(jnp.abs(x) > 0.4, x - 0.4 * jnp.sign(x), 0 * x),
            jnp.where(jnp.abs(x) >= 0.4, x, jnp.where(jnp.isnan(x), x, 0)),
            jax.nn.log_sigmoid(x),
            jax.nn.gelu(x, approximate=True),
            first * jax.nn.sigmoid(second),
            self.prelu(x),
            jnp.where(x <= 0.1, -1.0, x),
            x - jnp.tanh(x),
        )
