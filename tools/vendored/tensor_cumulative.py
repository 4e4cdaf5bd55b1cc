"""Cumulative functions (https://pytorch.org/docs/stable/torch.html#other-operations)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike, DTypeLike

from migrate_agent.tools.vendored.tensor_reduction import ValuesAndIndices


def cumsum(x: jax.Array, dim: int, dtype: DTypeLike | None = None) -> jax.Array:
    """Running sum; a scalar is its own (https://pytorch.org/docs/stable/generated/torch.cumsum.html)."""
    return jnp.cumsum(x, dim, dtype=dtype) if x.ndim else jnp.cumsum(x[None], dtype=dtype)[0]


def cumprod(x: jax.Array, dim: int, dtype: DTypeLike | None = None) -> jax.Array:
    """Running product; a scalar is its own (https://pytorch.org/docs/stable/generated/torch.cumprod.html)."""
    return jnp.cumprod(x, dim, dtype=dtype) if x.ndim else jnp.cumprod(x[None], dtype=dtype)[0]


def logcumsumexp(x: jax.Array, dim: int) -> jax.Array:
    """Running log of the sum of exponentials (https://pytorch.org/docs/stable/generated/torch.logcumsumexp.html)."""
    return lax.cumlogsumexp(x, axis=dim % x.ndim) if x.ndim else x


def running_extremum(x: jax.Array, dim: int, better: Callable[[jax.Array, jax.Array], jax.Array]) -> ValuesAndIndices:
    """Running best value and the last place where it stood; NaN once there was one."""
    if x.ndim == 0:
        return ValuesAndIndices(x, jnp.zeros((), int))

    def combine(left: tuple[jax.Array, jax.Array], right: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        nan_left, nan_right = left[0] != left[0], right[0] != right[0]
        keep_right = nan_right | (~nan_left & better(right[0], left[0]))
        return jnp.where(keep_right, right[0], left[0]), jnp.where(keep_right, right[1], left[1])

    positions = lax.broadcasted_iota(int, x.shape, dim % x.ndim)
    _, indices = lax.associative_scan(combine, (lax.stop_gradient(x), positions), axis=dim % x.ndim)
    return ValuesAndIndices(jnp.take_along_axis(x, indices, axis=dim), indices)


def cummax(x: jax.Array, dim: int) -> ValuesAndIndices:
    """Running maximum and its index (https://pytorch.org/docs/stable/generated/torch.cummax.html)."""
    return running_extremum(x, dim, lambda a, b: a >= b)


def cummin(x: jax.Array, dim: int) -> ValuesAndIndices:
    """Running minimum and its index (https://pytorch.org/docs/stable/generated/torch.cummin.html)."""
    return running_extremum(x, dim, lambda a, b: a <= b)


def cumulative_trapezoid(y: jax.Array, x: jax.Array | None = None, dx: float = 1, dim: int = -1) -> jax.Array:
    """Running integral by the trapezoid rule (https://pytorch.org/docs/stable/generated/torch.cumulative_trapezoid.html)."""
    if x is not None and x.ndim == 1 and y.ndim > 1:
        x = x.reshape([-1 if axis == dim % y.ndim else 1 for axis in range(y.ndim)])
    step: ArrayLike = dx if x is None else jnp.diff(x, axis=dim)
    length = y.shape[dim]
    low, high = lax.slice_in_dim(y, 0, length - 1, axis=dim), lax.slice_in_dim(y, 1, length, axis=dim)
    return jnp.cumsum((low + high) / 2 * step, axis=dim)


def gradient(
    x: jax.Array, spacing: float | Sequence[ArrayLike] | None = 1, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[jax.Array, ...]:
    """Numerical derivative along each axis by central differences (https://pytorch.org/docs/stable/generated/torch.gradient.html)."""
    axes = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    spacing = 1 if spacing is None else spacing
    steps = [spacing] * len(axes) if isinstance(spacing, (int, float)) else list(spacing)
    return tuple(derivative(x, step, axis, edge_order) for step, axis in zip(steps, axes, strict=True))


def derivative(x: jax.Array, step: ArrayLike, axis: int, edge_order: int) -> jax.Array:
    """Derivative along one axis on an even (a number) or uneven (coordinates) grid, one-sided at the edges."""
    x = jnp.moveaxis(x, axis, -1)
    size = x.shape[-1]
    at = jnp.arange(size) * step if jnp.ndim(step) == 0 else jnp.asarray(step)
    low, high = at[1:-1] - at[:-2], at[2:] - at[1:-1]
    middle = (x[..., 2:] * low**2 + x[..., 1:-1] * (high**2 - low**2) - x[..., :-2] * high**2) / (low * high * (low + high))
    first, last = (
        one_sided(x[..., : edge_order + 1], at[: edge_order + 1]),
        one_sided(x[..., : -edge_order - 2 : -1], at[: -edge_order - 2 : -1]),
    )
    return jnp.moveaxis(jnp.concatenate([first, middle, last], axis=-1), -1, axis)


def one_sided(x: jax.Array, at: jax.Array) -> jax.Array:
    """Derivative at the first of two or three points."""
    if x.shape[-1] == 2:
        return ((x[..., 1] - x[..., 0]) / (at[1] - at[0]))[..., None]
    a, b = at[1] - at[0], at[2] - at[0]
    return ((x[..., 1] * b**2 - x[..., 0] * (b**2 - a**2) - x[..., 2] * a**2) / (a * b * (b - a)))[..., None]
