"""A port line by line.

original: function_contrastive
family: plain port
"""

import jax
import jax.numpy as jnp


def norm(x):
    squares = jnp.sum(x**2, axis=1, keepdims=True)
    return jnp.where(squares == 0, 0.0, jnp.sqrt(jnp.where(squares == 0, 1.0, squares)))


def f(first, second, temperature=0.5, eps=1e-8):
    count = first.shape[0]
    both = jnp.concatenate([first, second])
    both = both / jnp.maximum(norm(both), eps)
    scores = both @ both.T / temperature
    scores = jnp.where(jnp.eye(2 * count, dtype=bool), -jnp.inf, scores)
    targets = jnp.concatenate([jnp.arange(count, 2 * count), jnp.arange(count)])
    logs = jax.nn.log_softmax(scores, axis=1)
    return -jnp.mean(jnp.take_along_axis(logs, targets[:, None], axis=1))
