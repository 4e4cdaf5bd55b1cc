"""A port line by line.

original: function_schedule
family: plain port
"""

import jax.numpy as jnp


def f(timesteps, s=0.008):
    x = jnp.linspace(0, timesteps, timesteps + 1)
    kept = jnp.cos((x / timesteps + s) / (1 + s) * jnp.pi * 0.5) ** 2
    kept = kept / kept[0]
    return jnp.clip(1 - kept[1:] / kept[:-1], 0.0001, 0.9999)
