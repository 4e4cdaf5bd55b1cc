"""Reductions with torch's results and gradients (https://pytorch.org/docs/stable/torch.html#reduction-ops)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from migrate_agent.tools.vendored.tensor_norm import vector_norm

Axes = int | Sequence[int] | None


class ValuesAndIndices(NamedTuple):
    """What torch's reductions over one axis give: the values, and where they stood."""

    values: jax.Array
    indices: jax.Array


class MinAndMax(NamedTuple):
    """What `torch.aminmax` gives."""

    min: jax.Array
    max: jax.Array


def as_axes(dim: Axes) -> int | tuple[int, ...] | None:
    """An axis argument as JAX wants it: a tuple for several axes; none given, or an empty list, means all."""
    if dim is None or isinstance(dim, int):
        return dim
    return tuple(dim) or None


def take_values(x: jax.Array, indices: jax.Array, dim: int, keepdim: bool) -> ValuesAndIndices:
    """The elements at `indices` (which keep the axis); their gradient goes to these places only."""
    values = jnp.take_along_axis(x, indices, axis=dim)
    return ValuesAndIndices(values, indices) if keepdim else ValuesAndIndices(values.squeeze(dim), indices.squeeze(dim))


def reduce_by_index(choose: Callable[[jax.Array, int], jax.Array], x: jax.Array, dim: int, keepdim: bool) -> ValuesAndIndices:
    """Reduce an axis to the element that `choose` points at; a scalar is its own result, at 0."""
    if x.ndim == 0:
        return ValuesAndIndices(x, jnp.zeros((), int))
    return take_values(x, choose(lax.stop_gradient(x), dim), dim, keepdim)


def max_with_indices(x: jax.Array, dim: int, keepdim: bool = False) -> ValuesAndIndices:
    """Largest values along an axis and where they are (https://pytorch.org/docs/stable/generated/torch.max.html)."""
    return reduce_by_index(lambda a, d: jnp.argmax(a, d, keepdims=True), x, dim, keepdim)


def min_with_indices(x: jax.Array, dim: int, keepdim: bool = False) -> ValuesAndIndices:
    """Smallest values along an axis and where they are (https://pytorch.org/docs/stable/generated/torch.min.html)."""
    return reduce_by_index(lambda a, d: jnp.argmin(a, d, keepdims=True), x, dim, keepdim)


def aminmax(x: jax.Array, dim: int | None = None, keepdim: bool = False) -> MinAndMax:
    """Smallest and largest values (https://pytorch.org/docs/stable/generated/torch.aminmax.html)."""
    dim = None if x.ndim == 0 else dim
    return MinAndMax(jnp.min(x, dim, keepdims=keepdim), jnp.max(x, dim, keepdims=keepdim))


def kthvalue(x: jax.Array, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The k-th smallest values along an axis, counted from 1 (https://pytorch.org/docs/stable/generated/torch.kthvalue.html)."""
    return reduce_by_index(lambda a, d: lax.slice_in_dim(jnp.argsort(a, d), k - 1, k, axis=d), x, dim, keepdim)


def median_with_indices(x: jax.Array, dim: int, keepdim: bool = False) -> ValuesAndIndices:
    """The lower median along an axis; NaN where there is one (https://pytorch.org/docs/stable/generated/torch.median.html)."""

    def choose(a: jax.Array, d: int) -> jax.Array:
        middle = lax.index_in_dim(jnp.argsort(a, d), (a.shape[d] - 1) // 2, d)
        nans = jnp.isnan(a)
        return jnp.where(nans.any(d, keepdims=True), jnp.argmax(nans, d, keepdims=True), middle)

    return reduce_by_index(choose, x, dim, keepdim)


def nanmedian_with_indices(x: jax.Array, dim: int, keepdim: bool = False) -> ValuesAndIndices:
    """The lower median along an axis of what is not NaN (https://pytorch.org/docs/stable/generated/torch.nanmedian.html)."""

    def choose(a: jax.Array, d: int) -> jax.Array:
        count = jnp.sum(~jnp.isnan(a), d, keepdims=True)
        return jnp.take_along_axis(jnp.argsort(a, d), jnp.maximum((count - 1) // 2, 0), axis=d)

    return reduce_by_index(choose, x, dim, keepdim)


def share_gradient(value: jax.Array, x: jax.Array) -> jax.Array:
    """An element of `x`, whose gradient goes in equal parts to all elements that equal it."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return value
    equal = (x == value) | (jnp.isnan(x) & jnp.isnan(value))
    count, fixed = jnp.sum(equal), jax.lax.stop_gradient(x)
    # The element itself, not a sum of its parts, which rounding may move; what is not finite has no difference of zero.
    finite = jax.lax.stop_gradient(value) + jnp.sum(jnp.where(equal, (x - fixed) / count, 0))
    return jnp.where(jnp.isfinite(value), finite, jnp.sum(jnp.where(equal, x / count, 0)))


def median(x: jax.Array) -> jax.Array:
    """The lower median of all elements (https://pytorch.org/docs/stable/generated/torch.median.html)."""
    return share_gradient(median_with_indices(x.reshape(-1), 0).values, x)


def nanmedian(x: jax.Array) -> jax.Array:
    """The lower median of all elements that are not NaN (https://pytorch.org/docs/stable/generated/torch.nanmedian.html)."""
    return share_gradient(nanmedian_with_indices(x.reshape(-1), 0).values, x)


def mode(x: jax.Array, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The most frequent values (the smallest of several) and where they last stand.

    https://pytorch.org/docs/stable/generated/torch.mode.html
    """

    def choose(a: jax.Array, d: int) -> jax.Array:
        a = jnp.moveaxis(a, d, -1)
        equal = a[..., :, None] == a[..., None, :]
        counts = equal.sum(-1)
        best = counts == counts.max(-1, keepdims=True)
        order = jnp.argsort(a, -1)
        first = jnp.argmax(jnp.take_along_axis(best, order, -1), -1, keepdims=True)
        value = jnp.take_along_axis(a, jnp.take_along_axis(order, first, -1), -1)
        last = a.shape[-1] - 1 - jnp.argmax(jnp.flip(a == value, -1), -1, keepdims=True)
        return jnp.moveaxis(last, -1, d)

    return reduce_by_index(choose, x, dim, keepdim)


def std(x: jax.Array, axis: Axes = None, ddof: int = 1, keepdims: bool = False) -> jax.Array:
    """Standard deviation; the gradient is 0 where it is 0 (https://pytorch.org/docs/stable/generated/torch.std.html)."""
    variance = jnp.var(x, axis=as_axes(axis), ddof=ddof, keepdims=keepdims)
    positive = variance != 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, variance, 1)), 0)


def var_mean(x: jax.Array, axis: Axes = None, ddof: int = 1, keepdims: bool = False) -> tuple[jax.Array, jax.Array]:
    """Variance and mean (https://pytorch.org/docs/stable/generated/torch.var_mean.html)."""
    axes = as_axes(axis)
    return jnp.var(x, axis=axes, ddof=ddof, keepdims=keepdims), jnp.mean(x, axis=axes, keepdims=keepdims)


def std_mean(x: jax.Array, axis: Axes = None, ddof: int = 1, keepdims: bool = False) -> tuple[jax.Array, jax.Array]:
    """Standard deviation and mean (https://pytorch.org/docs/stable/generated/torch.std_mean.html)."""
    return std(x, axis, ddof, keepdims), jnp.mean(x, axis=as_axes(axis), keepdims=keepdims)


def renorm(x: jax.Array, p: float, dim: int, maxnorm: float) -> jax.Array:
    """Slices along `dim` whose p-norm exceeds `maxnorm`, scaled down to it (https://pytorch.org/docs/stable/generated/torch.renorm.html)."""
    axes = tuple(i for i in range(x.ndim) if i != dim % x.ndim)
    norms = vector_norm(x, p, axes, keepdim=True)
    return x * jnp.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


def cov(x: jax.Array, correction: int = 1, fweights: jax.Array | None = None, aweights: jax.Array | None = None) -> jax.Array:
    """Covariance matrix of the rows (https://pytorch.org/docs/stable/generated/torch.cov.html)."""
    rows = jnp.atleast_2d(x)
    if fweights is None and aweights is None:
        return jnp.cov(rows, ddof=correction)
    given = [w for w in (fweights, aweights) if w is not None]
    weights = given[0] if len(given) == 1 else given[0] * given[1]
    total = weights.sum()
    mean = (rows * weights).sum(1, keepdims=True) / total
    taken = correction if aweights is None else correction * (weights * aweights).sum() / total
    spread = rows - mean
    return (spread @ jnp.conj((spread * weights).T) / jnp.maximum(total - taken, 0)).squeeze()
