"""Ranges (https://pytorch.org/docs/stable/torch.html#creation-ops)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike, DTypeLike


def integer_linspace(start: ArrayLike, end: ArrayLike, steps: int, dtype: DTypeLike) -> jax.Array:
    """`steps` integers from `start` to `end`; the bounds are cut first, and then each number.

    https://pytorch.org/docs/stable/generated/torch.linspace.html
    """
    first, last = jnp.trunc(jnp.asarray(start, float)), jnp.trunc(jnp.asarray(end, float))
    barrier: Any = lax.optimization_barrier  # else XLA multiplies by a rounded reciprocal
    count = barrier(jnp.asarray(max(steps - 1, 1), first.dtype))
    step = (last - first) / count
    index = jnp.arange(steps)
    points = jnp.where(index < steps // 2, first + step * index, last - step * (steps - 1 - index))
    return jnp.trunc(first[None] if steps == 1 else points).astype(dtype)


def integer_logspace(start: ArrayLike, end: ArrayLike, steps: int, base: float = 10.0, *, dtype: DTypeLike) -> jax.Array:
    """`base` to the power of evenly spaced numbers, cut to integers (https://pytorch.org/docs/stable/generated/torch.logspace.html)."""
    first, last = jnp.trunc(jnp.asarray(start, float)), jnp.trunc(jnp.asarray(end, float))
    return jnp.trunc(base ** jnp.linspace(first, last, steps)).astype(dtype)


def dense(indices: ArrayLike, values: ArrayLike, size: Sequence[int]) -> jax.Array:
    """An array of `size` with `values` (n, ...) at `indices` (axes, n) and zeros elsewhere; values of one place add up.

    It stands for a sparse tensor (https://docs.pytorch.org/docs/stable/generated/torch.sparse_coo_tensor.html), whose zeros take no memory.
    """
    axes, numbers = jnp.asarray(indices), jnp.asarray(values)
    return jnp.zeros(tuple(size), numbers.dtype).at[tuple(axes)].add(numbers)
