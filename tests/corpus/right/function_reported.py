"""The same in JAX: under `jit` a number is an array.

original: function_reported
family: plain port
"""

import jax.numpy as jnp
from jax import lax


def f(recon, x, mu, logvar, beta=0.5):
    rec = ((recon - x) ** 2).sum()
    kl = -0.5 * jnp.sum(1 + logvar - mu**2 - jnp.exp(logvar))
    loss = rec + beta * kl
    logs = {"loss": lax.stop_gradient(loss), "rec": lax.stop_gradient(rec)}
    logs["kl"] = lax.stop_gradient(kl)
    return loss, logs
