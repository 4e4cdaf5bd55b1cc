"""The diagonal of a product by row sums of squares.

original: conditioning
family: ill-conditioned
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        y = 1e5 + x
        mean = y.sum(-1, keepdims=True) / y.shape[-1]
        var = ((y - mean) ** 2).sum(-1, keepdims=True) / y.shape[-1]
        normed = (y - mean) * jax.lax.rsqrt(var + 1e-5)
        a = x[0][:, None] * x[0][None] + 1e-3 * jnp.eye(x.shape[1], dtype=x.dtype)
        solved = jnp.linalg.solve(a, x[1])
        logdet = jnp.log((a * a).sum(1)).sum()
        wave = jnp.sin(1e4 * x)
        large = jnp.exp(x) * 1e3
        return normed, solved, logdet, wave, large.sum(-1) - jnp.roll(large, 1, -1).sum(-1) + x[:, 0]
