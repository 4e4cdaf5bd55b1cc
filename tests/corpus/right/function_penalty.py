"""The slopes by jax.grad.

original: function_penalty
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class Net(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs | None = None):
        rngs = rngs or nnx.Rngs(0)
        self.first = Linear(4, 8, rngs=rngs)
        self.last = Linear(8, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(jnp.tanh(self.first(x)))


def norm(x):
    """The norms of rows. Like torch's, the gradient of a row of zeros is zero."""
    squares = jnp.sum(x**2, axis=1)
    return jnp.where(squares == 0, 0.0, jnp.sqrt(jnp.where(squares == 0, 1.0, squares)))


def f(discriminator, real, fake, weight=10.0):
    mixed = jax.lax.stop_gradient(0.3 * real + 0.7 * fake)
    slopes = jax.grad(lambda x: jnp.sum(discriminator(x)))(mixed)
    return weight * jnp.mean((norm(slopes) - 1) ** 2)
