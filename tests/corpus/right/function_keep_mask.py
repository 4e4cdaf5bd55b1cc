"""The draw as the source has it.

original: function_keep_mask
family: plain port
"""

import jax
import jax.numpy as jnp


def f(shape, keep, *, rngs):
    if keep == 1:
        return jnp.ones(shape, dtype=bool)
    return jax.random.uniform(rngs(), shape) < keep
