"""The plain port.

original: held_settings
family: plain port
"""

from dataclasses import dataclass

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


@dataclass
class Settings:
    width: int = 6
    period: float = 10.0


class M(nnx.Module):
    def __init__(self, settings, *, rngs):
        self.settings = settings
        self.lin = Linear(settings.width, settings.width, rngs=rngs)

    def __call__(self, x):
        place = jnp.arange(x.shape[1], dtype=x.dtype)[:, None]
        return self.lin(x + jnp.sin(place / self.settings.period))

    def stretch(self, x, period):
        self.settings.period = period
        return self(x)
