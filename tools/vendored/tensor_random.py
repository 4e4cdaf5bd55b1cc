"""Random draws that take torch's arguments, and a key (https://pytorch.org/docs/stable/torch.html#random-sampling)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike, DTypeLike


def normal(key: jax.Array, mean: ArrayLike, std: ArrayLike, size: Sequence[int] | None = None, dtype: DTypeLike | None = None) -> jax.Array:
    """Normal numbers; mean and deviation may be arrays, which get no gradient (https://pytorch.org/docs/stable/generated/torch.normal.html)."""
    shape = jnp.broadcast_shapes(jnp.shape(mean), jnp.shape(std)) if size is None else tuple(size)
    drawn = jax.random.normal(key, shape, dtype or jnp.result_type(mean, std, float))
    return lax.stop_gradient(jnp.asarray(mean) + jnp.asarray(std) * drawn)


def randint_like(key: jax.Array, x: jax.Array, low: int, high: int, dtype: DTypeLike) -> jax.Array:
    """Integers from `low` to `high - 1` in the shape of `x`, in any dtype (https://pytorch.org/docs/stable/generated/torch.randint_like.html)."""
    return jax.random.randint(key, x.shape, low, high).astype(dtype)


def bernoulli(key: jax.Array, x: jax.Array, p: float | None = None) -> jax.Array:
    """0 or 1 in the shape and dtype of `x`, 1 with probability `x`, or `p` (https://pytorch.org/docs/stable/generated/torch.bernoulli.html)."""
    return jax.random.bernoulli(key, x if p is None else p, x.shape).astype(x.dtype)


def multinomial(key: jax.Array, weights: jax.Array, num_samples: int, replacement: bool = False) -> jax.Array:
    """Indices drawn in proportion to the rows of `weights` (https://pytorch.org/docs/stable/generated/torch.multinomial.html)."""
    logits = jnp.log(weights)
    if replacement:
        return jnp.moveaxis(jax.random.categorical(key, logits, shape=(num_samples, *weights.shape[:-1])), 0, -1).astype(int)
    noisy = logits + jax.random.gumbel(key, weights.shape, logits.dtype)
    return jnp.argsort(noisy, axis=-1, descending=True)[..., :num_samples].astype(int)


def complex_uniform(key: jax.Array, shape: Sequence[int], dtype: DTypeLike) -> jax.Array:
    """Complex numbers whose parts lie from 0 to 1 (https://pytorch.org/docs/stable/generated/torch.rand.html)."""
    parts = jax.random.uniform(key, (2, *shape), jnp.finfo(dtype).dtype)
    return jax.lax.complex(parts[0], parts[1])
