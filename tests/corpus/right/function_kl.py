"""A port line by line.

original: function_kl
family: plain port
"""

import jax.numpy as jnp


def f(mean, log_variance, reduction="batchmean", free_bits=0.0):
    kl = 0.5 * (mean**2 + jnp.exp(log_variance) - 1 - log_variance)
    kl = jnp.where(kl < free_bits, free_bits, kl)
    if reduction == "batchmean":
        return jnp.sum(kl) / mean.shape[0]
    if reduction == "mean":
        return jnp.mean(kl)
    if reduction == "none":
        return kl
    raise ValueError(reduction)
