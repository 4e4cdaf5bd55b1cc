"""The plain port.

original: frozen_norm
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import BatchNorm2d, Conv2d, Dropout, Linear


def leaky_relu(x: jax.Array, slope: float) -> jax.Array:
    return jnp.where(x > 0, x, slope * x)  # whose gradient at 0 is torch's, where that of `jax.nn.leaky_relu` is 1


class M(nnx.Module):
    def __init__(self, width, rate=0.25, slope=0.1, *, rngs):
        self.slope = slope
        self.stem = Conv2d(3, width, 3, padding=1, bias=False, rngs=rngs)
        self.norm = BatchNorm2d(width, rngs=rngs)
        self.conv = Conv2d(width, width, 3, padding=1, bias=False, rngs=rngs)
        self.norm2 = BatchNorm2d(width, momentum=0.3, rngs=rngs)
        self.drop = Dropout(rate, rngs=rngs)
        self.head = Linear(width, 5, rngs=rngs)

    def __call__(self, x):
        x = leaky_relu(self.norm(self.stem(x)), self.slope)
        x = x + leaky_relu(self.norm2(self.conv(x)), self.slope)
        return self.head(self.drop(x.mean((2, 3))))
