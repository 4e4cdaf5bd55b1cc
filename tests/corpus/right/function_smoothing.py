"""A port line by line.

original: function_smoothing
family: plain port
"""

import jax
import jax.numpy as jnp


def f(logits: jax.Array, target: jax.Array, smoothing: float = 0.1, ignore_index: int = -100) -> jax.Array:
    keep = target != ignore_index
    logs = jax.nn.log_softmax(logits, axis=-1)
    chosen = jnp.take_along_axis(logs, jnp.where(keep, target, 0)[:, None], axis=1)[:, 0]
    loss = -(1 - smoothing) * chosen - smoothing * jnp.mean(logs, axis=-1)
    return jnp.sum(loss * keep) / jnp.maximum(jnp.sum(keep), 1)
