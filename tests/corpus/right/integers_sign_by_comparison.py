"""The sign by comparisons, truncation by floor and ceiling.

original: integers
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, a, b, x):
        return {
            "floor": a // b,
            "trunc": jax.lax.div(a, b),
            "remainder": a % b,
            "fmod": jnp.fmod(a, b),
            "true": a / b,
            "round": jnp.round(x),
            "truncx": jnp.where(x < 0, jnp.ceil(x), jnp.floor(x)),
            "floorx": x // 2,
            "modx": x % 2,
            "fmodx": jnp.fmod(x, 2),
            "sign": (x > 0).astype(x.dtype) - (x < 0),
            "copysign": jnp.copysign(jnp.ones_like(x), x),
            "atan2": jnp.atan2(x * 0, -jnp.ones_like(x)),
            "inverse": 1 / -jnp.abs(x * 0 - 0.0),
            "shift": a >> 1,
            "long": x.astype(int),
            "mean": a.astype(jnp.float32).mean(),
            "sum": a.sum(),
            "mixed": a * 0.5,
            "bool": (a > b) & (x != 0),
            "power": a**2,
        }
