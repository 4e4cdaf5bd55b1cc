"""The variance by the difference to the mean, the cumulative sum as a product with a triangle.

original: reductions
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        order = jnp.argsort(x, axis=0, stable=True)
        best, places = jax.lax.top_k(x + 0.1 * jnp.arange(5), 2)
        n = x.shape[-1]
        where = x.argmax(-1)
        part = x[..., 1:]
        median = jax.lax.stop_gradient(jnp.sort(part, axis=-1)[..., (n - 2) // 2])
        return {
            "var": ((x - x.mean(-1, keepdims=True)) ** 2).sum(-1) / (n - 1),
            "std": vector_norm((x - x.mean(0)).T) / max(len(x) - 1, 0) ** 0.5,
            "max": jnp.take_along_axis(x, where[..., None], axis=-1)[..., 0],
            "argmax": where,
            "argmin": x.argmin(0),
            "sorted": jnp.take_along_axis(x, order, axis=0),
            "order": order,
            "topk": best,
            "places": places,
            "median": jnp.where(jnp.isnan(part).any(-1), jnp.nan, median),
            "norm": vector_norm(x),
            "lse": jax.scipy.special.logsumexp(x, axis=0),
            "cumsum": jnp.cumsum(x, axis=0),
            "prod": jnp.prod(x, axis=-1),
            "all": (x > -3).all(-1),
            "count": (x == x.max()).sum(),
            "amin": x.min(),
        }


def vector_norm(x):
    total = (x * x).sum(-1)
    return jnp.where(total == 0, 0.0, jnp.sqrt(jnp.where(total == 0, 1.0, total)))
