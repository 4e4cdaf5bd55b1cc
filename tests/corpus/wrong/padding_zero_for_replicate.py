"""Padded with zeros instead of the edge.

original: padding
family: padding sides
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import unfold


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return (
            jnp.pad(x, ((0, 0), (0, 0), (3, 0), (1, 2)), constant_values=0.5),
            jnp.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), mode="reflect"),
            jnp.pad(x, ((0, 0), (0, 0), (0, 3), (2, 1))),
            jnp.pad(x, ((0, 0), (0, 0), (2, 0), (1, 2)), mode="wrap"),
            jnp.pad(x[..., 1:], ((0, 0), (0, 0), (0, 0), (0, 1))),
            jnp.roll(x, (1, -2), (2, 3)),
            unfold(x, 3, padding=1, stride=2),
        )
