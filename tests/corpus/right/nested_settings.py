"""The plain port.

original: nested_settings
family: plain port
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class Window(NamedTuple):
    height: int
    width: int


class M(nnx.Module):
    def __init__(self, settings, *, rngs):
        self.window = settings.window
        self.gain = settings.model.gain
        self.share = 1.0 - settings.dropped["rate"]["first"]
        self.proj = Linear(settings.model.width, settings.model.width, rngs=rngs)

    def __call__(self, x):
        sides = (1, 1, self.window.height, self.window.width)
        y = jax.lax.reduce_window(x, 0.0, jax.lax.add, sides, (1, 1, 1, 1), "VALID") / (self.window.height * self.window.width)
        y = jnp.moveaxis(self.proj(jnp.moveaxis(y, 1, -1)), -1, 1)
        return jnp.tanh(y * self.gain) * self.share
