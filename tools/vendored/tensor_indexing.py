"""Gathering and scattering with torch's index rules (https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike


def axis_index(index: jax.Array, dim: int) -> tuple[jax.Array, ...]:
    """Coordinates of every element of `index`, with `index` itself in the place of axis `dim`."""
    grid = jnp.ogrid[tuple(slice(size) for size in index.shape)]
    return tuple(index if axis == dim % index.ndim else grid[axis] for axis in range(index.ndim))


def gather(x: jax.Array, dim: int, index: jax.Array) -> jax.Array:
    """`x[i][index[i][j]]…` along `dim`; `index` may be smaller than `x` (https://pytorch.org/docs/stable/generated/torch.gather.html)."""
    if x.ndim == 0 or index.ndim == 0:
        return jnp.broadcast_to(x.reshape(-1)[index.reshape(-1)].reshape(index.shape), index.shape)
    if index.size == 0:
        return jnp.zeros(index.shape, x.dtype)
    return x[axis_index(index, dim)]


def set_along_axis(x: jax.Array, axis: int, index: jax.Array, values: ArrayLike) -> jax.Array:
    """`x` with `values` (a number, or at least as large as `index`) at `index` along an axis; the other axes of `index` may be shorter than those of `x`."""
    return x.at[axis_index(index, axis)].set(as_large_as(values, index))


def add_along_axis(x: jax.Array, axis: int, index: jax.Array, values: ArrayLike) -> jax.Array:
    """`x` with `values` (a number, or at least as large as `index`) added at `index` along an axis."""
    return x.at[axis_index(index, axis)].add(as_large_as(values, index))


def as_large_as(values: ArrayLike, index: jax.Array) -> ArrayLike:
    """The part of `values` that `index` has places for; a number as it is."""
    return values[tuple(slice(size) for size in index.shape)] if isinstance(values, jax.Array) and values.ndim else values


def scatter(x: jax.Array, dim: int, index: jax.Array, src: ArrayLike, reduce: str | None = None) -> jax.Array:
    """`x` with `src` (an array at least as large as `index`, or a number) written, added or multiplied at `index` along `dim`.

    https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html
    """
    if index.size == 0:
        return x
    if x.ndim == 0 or index.ndim == 0:
        return scatter(x.reshape(1), 0, index.reshape(1), jnp.asarray(src).reshape(-1)[:1], reduce).reshape(x.shape)
    values = as_large_as(jnp.asarray(src, x.dtype), index)
    where = axis_index(index, dim)
    if reduce is None:
        return x.at[where].set(values)
    return add_at(x, where, values) if reduce == "add" else multiply_at(x, where, jnp.broadcast_to(values, index.shape))


def scatter_add(x: jax.Array, dim: int, index: jax.Array, src: jax.Array) -> jax.Array:
    """`x` with `src` added at `index` along `dim` (https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html)."""
    return scatter(x, dim, index, src, "add")


def scatter_reduce(x: jax.Array, dim: int, index: jax.Array, src: jax.Array, reduce: str, include_self: bool = True) -> jax.Array:
    """`x` with `src` reduced into it at `index` (`sum`, `prod`, `mean`, `amax`, `amin`), with or without the old value.

    https://pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html
    """
    if index.size == 0:
        return x
    if x.ndim == 0 or index.ndim == 0:
        return scatter_reduce(x.reshape(1), 0, index.reshape(1), src.reshape(1), reduce, include_self).reshape(x.shape)
    where = axis_index(index, dim)
    values = src[tuple(slice(size) for size in index.shape)].astype(x.dtype)
    return reduce_at(x, where, values, reduce, include_self)


def add_at(x: jax.Array, where: tuple[jax.Array | slice, ...], values: ArrayLike) -> jax.Array:
    """`x` with `values` added at `where`; for bools the sum is "or"."""
    values = jnp.asarray(values, x.dtype)
    return x.at[where].max(values) if x.dtype == bool else x.at[where].add(values)


def multiply_at(x: jax.Array, where: tuple[jax.Array | slice, ...], values: jax.Array) -> jax.Array:
    """`x` times `values` at `where`; unlike `.at[].multiply` it has a gradient where positions repeat."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return x.at[where].min(values) if x.dtype == bool else x.at[where].multiply(values)
    places = jnp.arange(x.size).reshape(x.shape)[where].reshape(-1)
    places = jnp.concatenate([jnp.arange(x.size), places])
    order = jnp.argsort(places)
    places, factors = places[order], jnp.concatenate([x.reshape(-1), values.reshape(-1)])[order]
    starts = jnp.diff(places, prepend=-1) != 0

    def combine(left: tuple[jax.Array, jax.Array], right: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return left[0] | right[0], jnp.where(right[0], right[1], left[1] * right[1])

    products: jax.Array = jax.lax.associative_scan(combine, (starts, factors))[1]
    last = jnp.searchsorted(places, jnp.arange(x.size), side="right") - 1
    return products[last].reshape(x.shape)


def reduce_at(x: jax.Array, where: tuple[jax.Array | slice, ...], values: jax.Array, reduce: str, include_self: bool) -> jax.Array:
    """`x` with `values` reduced into it at `where`; elements that nothing is written to stay."""
    start = x if include_self else x.at[where].set(jnp.asarray(neutral(reduce, x.dtype), x.dtype))
    if reduce == "sum":
        return add_at(start, where, values)
    if reduce == "prod":
        return multiply_at(start, where, values)
    if reduce == "mean":
        count = jnp.full(x.shape, int(include_self)).at[where].add(1)
        total, count = start.at[where].add(values), jnp.maximum(count, 1)
        return total / count if jnp.issubdtype(x.dtype, jnp.inexact) else total // count
    return extremum_at(start, where, values, reduce == "amax")


def neutral(reduce: str, dtype: jnp.dtype) -> ArrayLike:
    """The value that changes nothing under a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if jnp.issubdtype(dtype, jnp.bool_):
        return reduce == "amin"
    if jnp.issubdtype(dtype, jnp.inexact):
        return -math.inf if reduce == "amax" else math.inf
    limits = np.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


def extremum_at(x: jax.Array, where: tuple[jax.Array | slice, ...], values: jax.Array, largest: bool) -> jax.Array:
    """The largest (or smallest) of `x` and `values` at `where`; ties share the gradient evenly."""
    fixed_x, fixed = jax.lax.stop_gradient(x), jax.lax.stop_gradient(values)
    best = fixed_x.at[where].max(fixed) if largest else fixed_x.at[where].min(fixed)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return best
    from_x, from_values = fixed_x == best, fixed == best[where]
    ties = from_x.astype(x.dtype).at[where].add(from_values.astype(x.dtype))
    moves = jnp.where(from_x, x - fixed_x, 0).at[where].add(jnp.where(from_values, values - fixed, 0))
    return best + jnp.where(jnp.isfinite(best), moves / jnp.maximum(ties, 1), 0)


def along(dim: int, index: jax.Array) -> tuple[slice | jax.Array, ...]:
    """The index that picks `index` on axis `dim`."""
    return (*[slice(None)] * dim, index)


def index_select(x: jax.Array, dim: int, index: jax.Array) -> jax.Array:
    """The slices of `x` at `index` along `dim` (https://pytorch.org/docs/stable/generated/torch.index_select.html)."""
    return jnp.take(x, index, axis=dim) if x.ndim else jnp.broadcast_to(x, ()) if index.ndim else x


def index_add(x: jax.Array, dim: int, index: jax.Array, source: jax.Array, alpha: ArrayLike = 1) -> jax.Array:
    """`x` with slices of `source` added at `index` (https://pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html)."""
    if x.ndim == 0:
        return index_add(x[None], 0, index.reshape(-1), source.reshape(-1), alpha)[0]
    return add_at(x, along(dim % x.ndim, index), alpha * source)


def index_copy(x: jax.Array, dim: int, index: jax.Array, source: jax.Array) -> jax.Array:
    """`x` with slices of `source` written at `index` (https://pytorch.org/docs/stable/generated/torch.Tensor.index_copy_.html)."""
    if x.ndim == 0:
        return source.reshape(x.shape)
    return x.at[along(dim % x.ndim, index)].set(source)


def index_fill(x: jax.Array, dim: int, index: jax.Array, value: ArrayLike) -> jax.Array:
    """`x` with `value` written at `index` along `dim` (https://pytorch.org/docs/stable/generated/torch.Tensor.index_fill_.html)."""
    if x.ndim == 0:
        return jnp.full_like(x, value)
    return x.at[along(dim % x.ndim, index)].set(value)


def index_reduce(x: jax.Array, dim: int, index: jax.Array, source: jax.Array, reduce: str, include_self: bool = True) -> jax.Array:
    """`x` with slices of `source` reduced into it at `index` (https://pytorch.org/docs/stable/generated/torch.Tensor.index_reduce_.html)."""
    if x.ndim == 0:
        return index_reduce(x[None], 0, index.reshape(-1), source.reshape(-1), reduce, include_self)[0]
    return reduce_at(x, along(dim % x.ndim, index), source.astype(x.dtype), reduce, include_self)


def index_put(x: jax.Array, indices: Sequence[jax.Array], values: jax.Array, accumulate: bool = False) -> jax.Array:
    """`x` with `values` written (or added) at `indices` (https://pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html)."""
    return add_at(x, tuple(indices), values) if accumulate else x.at[tuple(indices)].set(values)


def put(x: jax.Array, index: jax.Array, source: jax.Array, accumulate: bool = False) -> jax.Array:
    """`x` with `source` written (or added) at positions of the flattened `x` (https://pytorch.org/docs/stable/generated/torch.Tensor.put_.html)."""
    return index_put(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate).reshape(x.shape)


def take_along_dim(x: jax.Array, indices: jax.Array, dim: int) -> jax.Array:
    """`gather` with broadcasting (https://pytorch.org/docs/stable/generated/torch.take_along_dim.html)."""
    return jnp.take_along_axis(x, indices, axis=dim)


def masked_scatter(x: jax.Array, mask: jax.Array, source: jax.Array) -> jax.Array:
    """`x` with the elements of `source`, in order, where `mask` holds (https://pytorch.org/docs/stable/generated/torch.Tensor.masked_scatter_.html)."""
    shape = jnp.broadcast_shapes(x.shape, mask.shape)
    mask = jnp.broadcast_to(mask, shape).reshape(-1)
    position = jnp.cumsum(mask) - 1
    taken = source.reshape(-1)[jnp.clip(position, 0, max(source.size - 1, 0))] if source.size else jnp.zeros(mask.shape, x.dtype)
    return jnp.where(mask, taken, jnp.broadcast_to(x, shape).reshape(-1)).reshape(shape)


def diag_embed(x: jax.Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> jax.Array:
    """The last axis of `x` as a diagonal of the axes `dim1` and `dim2` (https://pytorch.org/docs/stable/generated/torch.diag_embed.html)."""
    size, rows = x.shape[-1] + abs(offset), jnp.arange(x.shape[-1])
    square = jnp.zeros((*x.shape[:-1], size, size), x.dtype).at[..., rows + max(-offset, 0), rows + max(offset, 0)].set(x)
    return jnp.moveaxis(square, (-2, -1), (dim1, dim2))


def diagonal_scatter(x: jax.Array, src: jax.Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> jax.Array:
    """`x` with `src` written on a diagonal (https://pytorch.org/docs/stable/generated/torch.diagonal_scatter.html)."""
    rows = jnp.arange(src.shape[-1])
    moved = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    return jnp.moveaxis(moved.at[..., rows + max(-offset, 0), rows + max(offset, 0)].set(src), (-2, -1), (dim1, dim2))
