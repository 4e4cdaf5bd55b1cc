"""Reflection by an index, the roll by joining slices.

original: padding
family: other but equal formulas
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
            jnp.pad(jnp.pad(x, ((0, 0), (0, 0), (0, 0), (2, 1)), mode="reflect"), ((0, 0), (0, 0), (1, 2), (0, 0)), mode="reflect"),
            jnp.pad(x, ((0, 0), (0, 0), (0, 3), (2, 1)), mode="edge"),
            jnp.pad(x, ((0, 0), (0, 0), (2, 0), (1, 2)), mode="wrap"),
            jnp.pad(x[..., 1:], ((0, 0), (0, 0), (0, 0), (0, 1))),
            (lambda y: jnp.concatenate([y[..., 2:], y[..., :2]], axis=3))(jnp.concatenate([x[:, :, -1:], x[:, :, :-1]], axis=2)),
            unfold(x, 3, padding=1, stride=2),
        )
