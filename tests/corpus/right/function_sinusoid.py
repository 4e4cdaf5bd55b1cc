"""Padded where the width is odd.

original: function_sinusoid
family: other but equal formulas
"""

import math

import jax.numpy as jnp


def f(steps, dim, max_period=10000):
    half = dim // 2
    frequencies = jnp.exp(-math.log(max_period) * jnp.arange(half, dtype=jnp.float32) / half)
    angles = steps[:, None].astype(jnp.float32) * frequencies
    embedding = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)
    return jnp.pad(embedding, ((0, 0), (0, dim % 2)))
