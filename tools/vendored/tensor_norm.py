"""Norms with torch's gradients: 0 at 0, and shared evenly between ties (https://pytorch.org/docs/stable/linalg.html#matrix-properties)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from migrate_agent.tools.vendored.numeric import absolute


def vector_norm(
    x: jax.Array, ord: float = 2, dim: int | Sequence[int] | None = None, keepdim: bool = False, dtype: DTypeLike | None = None
) -> jax.Array:
    """The `ord`-norm over some axes, or over all elements (https://pytorch.org/docs/stable/generated/torch.linalg.vector_norm.html)."""
    x = x if dtype is None else x.astype(dtype)
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim) or tuple(range(x.ndim))
    axes = axes if x.ndim else ()
    size = absolute(x)
    if ord == math.inf:
        return jnp.max(size, axes, keepdims=keepdim)
    if ord == -math.inf:
        return jnp.min(size, axes, keepdims=keepdim)
    if ord == 0:
        return jnp.sum(x != 0, axes, keepdims=keepdim).astype(size.dtype)
    if ord == 1:
        return jnp.sum(size, axes, keepdims=keepdim)
    if ord == 2:
        total = jnp.sum(jnp.square(size), axes, keepdims=keepdim)
        return jnp.where(total == 0, total, jnp.sqrt(jnp.where(total == 0, 1, total)))
    at_zero, at_infinity = (0, math.inf) if ord > 0 else (math.inf, 0)
    powers = jnp.where(size == 0, at_zero, jnp.where(size == 0, 1, size) ** ord)
    total = jnp.sum(powers, axes, keepdims=keepdim)
    inside = (total > 0) & (total < math.inf)
    edges = jnp.where(total == 0, at_zero, jnp.where(total == math.inf, at_infinity, total))
    return jnp.where(inside, jnp.where(inside, total, 1) ** (1 / ord), edges)


def matrix_norm(
    x: jax.Array, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, dtype: DTypeLike | None = None
) -> jax.Array:
    """A matrix norm over two axes (https://pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html)."""
    x = x if dtype is None else x.astype(dtype)
    first, second = (d % x.ndim for d in dim)
    if ord == "fro":
        return vector_norm(x, 2, (first, second), keepdim)
    if ord in (1, -1, math.inf, -math.inf):
        summed, other = (first, second) if abs(float(ord)) == 1 else (second, first)
        sums = jnp.sum(absolute(x), summed, keepdims=True)
        result = jnp.max(sums, other, keepdims=True) if float(ord) > 0 else jnp.min(sums, other, keepdims=True)
    else:
        singular = jnp.linalg.svd(jnp.moveaxis(x, (first, second), (-2, -1)), compute_uv=False)
        reduced = singular.sum(-1) if ord == "nuc" else singular.max(-1) if ord == 2 else singular.min(-1)
        result = jnp.expand_dims(reduced, tuple(sorted((first, second))))
    return result if keepdim else result.squeeze((first, second))


def norm(
    x: jax.Array,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """`torch.norm`: vector norms, over all elements unless `dim` is given; `"nuc"` is the nuclear norm of matrices.

    https://pytorch.org/docs/stable/generated/torch.norm.html
    """
    if p == "nuc":
        axes = dim if isinstance(dim, Sequence) and dim else (0, 1)
        return matrix_norm(x, "nuc", axes, keepdim, dtype)
    return vector_norm(x, 2 if p is None or isinstance(p, str) else p, dim, keepdim, dtype)


def linalg_norm(
    x: jax.Array,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
) -> jax.Array:
    """A vector norm, or with two axes (or a matrix) and an `ord` a matrix norm (https://pytorch.org/docs/stable/generated/torch.linalg.norm.html)."""
    if ord is None or isinstance(dim, int) or (dim is not None and len(dim) == 1) or (dim is None and x.ndim == 1):
        return vector_norm(x, 2 if ord is None or isinstance(ord, str) else ord, dim, keepdim, dtype)
    return matrix_norm(x, ord, (-2, -1) if dim is None else dim if isinstance(dim, Sequence) else (dim,), keepdim, dtype)
