"""A port line by line.

original: function_accuracy
family: plain port
"""

import jax.numpy as jnp
from jax import lax


def f(output, target, topk=(1,)):
    _, best = lax.top_k(lax.stop_gradient(output), max(topk))
    right = best.T == target.reshape(1, -1)
    return [jnp.sum(right[:k].reshape(-1).astype(jnp.float32), keepdims=True) * (100.0 / target.shape[0]) for k in topk]
