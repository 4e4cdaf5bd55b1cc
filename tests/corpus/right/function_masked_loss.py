"""A port line by line.

original: function_masked_loss
family: plain port
"""

import jax
import jax.numpy as jnp


def f(prediction: jax.Array, target: jax.Array, mask: jax.Array, kind: str = "square", delta: float = 1.0) -> jax.Array:
    error = prediction - target
    if kind == "square":
        loss = error**2
    elif kind == "huber":
        size = jnp.abs(error)
        loss = jnp.where(size < delta, 0.5 * error**2, delta * (size - 0.5 * delta))
    elif kind == "log_cosh":
        loss = error + jax.nn.softplus(-2.0 * error) - 0.6931471805599453
    else:
        raise ValueError(f"unknown kind: {kind}")
    weights = mask.astype(jnp.float32)
    return jnp.sum(loss * weights) / jnp.maximum(jnp.sum(weights), 1.0)
