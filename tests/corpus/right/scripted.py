"""A port line by line.

original: scripted
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx


def rotated(x: jax.Array, angle: jax.Array, interleaved: bool = False):
    if interleaved:
        pairs = x.reshape(*x.shape[:-1], -1, 2)
        turned = jnp.stack((-pairs[..., 1], pairs[..., 0]), axis=-1).reshape(x.shape)
    else:
        first, second = jnp.split(x, 2, axis=-1)
        turned = jnp.concatenate((-second, first), axis=-1)
    return x * jnp.cos(angle) + turned * jnp.sin(angle)


class M(nnx.Module):
    def __init__(self, interleaved: bool = False, *, rngs: nnx.Rngs):
        self.interleaved = interleaved
        self.angle = nnx.Param(jax.random.normal(rngs.params(), (8,)))

    def __call__(self, x):
        return rotated(x, self.angle[...], self.interleaved)
