"""Reductions and normalisations of the elements that a mask lets through (https://pytorch.org/docs/stable/masked.html)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike, DTypeLike

from migrate_agent.tools.vendored.tensor_cumulative import cumprod, cumsum
from migrate_agent.tools.vendored.tensor_norm import vector_norm
from migrate_agent.tools.vendored.tensor_reduction import nanmedian_with_indices

MaskOrNone = jax.Array | None


def masked_input(x: jax.Array, mask: MaskOrNone, fill: ArrayLike) -> jax.Array:
    """`x` with `fill` where the mask is false."""
    return x if mask is None else jnp.where(mask.astype(bool), x, jnp.asarray(fill, x.dtype))


def fill_unselected(x: jax.Array, mask: jax.Array) -> jax.Array:
    """`x` with one of its elements that the mask selects in the place of all that it does not; the mask goes over the leading axes.

    What is computed from it element by element is finite, with its derivatives, wherever it is so for what the mask selects, or for 1 where
    it selects nothing.
    """
    rows = x.reshape(-1, *x.shape[mask.ndim :])
    selected = jnp.where(mask.any(), rows[jnp.argmax(mask)], jnp.ones((), x.dtype)) if rows.shape[0] else jnp.ones((), x.dtype)
    return jnp.where(mask.reshape(*mask.shape, *[1] * (x.ndim - mask.ndim)), x, lax.stop_gradient(selected))


def padded_rows(x: jax.Array, mask: jax.Array) -> jax.Array:
    """`x[mask]` with a row for each place of the mask: `x` (*mask.shape, …) → (mask.size, …).

    Where the mask does not select, there is a copy of a row that it selects (`fill_unselected`). The mask may end before `x` does.
    """
    x = x[tuple(slice(size) for size in mask.shape)]
    return fill_unselected(x, mask).reshape(mask.size, *x.shape[mask.ndim :])


def set_padded_rows(x: jax.Array, mask: jax.Array, rows: jax.Array) -> jax.Array:
    """`x[mask] = rows`, where `rows` has one row for each place of the mask, or broadcasts to that."""
    missing = [(0, size - end) for size, end in zip(x.shape[: mask.ndim], mask.shape, strict=True)]
    rows = jnp.broadcast_to(rows, (mask.size, *x.shape[mask.ndim :])).reshape(*mask.shape, *x.shape[mask.ndim :])
    if any(after for _, after in missing):
        mask, rows = jnp.pad(mask, missing), jnp.pad(rows, [*missing, *[(0, 0)] * (rows.ndim - mask.ndim)])
    return jnp.where(mask.reshape(*mask.shape, *[1] * (x.ndim - mask.ndim)), rows.astype(x.dtype), x)


def set_next_rows(x: jax.Array, mask: jax.Array, rows: jax.Array) -> jax.Array:
    """`x[mask] = rows`, where the places that the mask selects take one row after the other, as many as there are; or all take the only one."""
    return set_padded_rows(x, mask, next_rows(mask, rows).reshape(mask.size, *rows.shape[1:]))


def next_rows(mask: jax.Array, rows: jax.Array) -> jax.Array:
    """The row for each place of a mask where those that it selects take one row after the other; or all take the only one: (*mask.shape, …)."""
    place = jnp.clip(jnp.cumsum(mask.reshape(-1)) - 1, 0, rows.shape[0] - 1)
    return rows[place].reshape(*mask.shape, *rows.shape[1:])


def masked_select(x: jax.Array, mask: jax.Array) -> jax.Array:
    """What a mask selects (https://pytorch.org/docs/stable/generated/torch.masked_select.html). The values of the mask must be known."""
    x, mask = jnp.broadcast_arrays(x, mask)
    return x[mask.astype(bool)]


def masked_lowest(x: jax.Array) -> Any:
    """What never wins a maximum of such numbers."""
    return -jnp.inf if jnp.issubdtype(x.dtype, jnp.inexact) else np.iinfo(x.dtype).min


def masked_highest(x: jax.Array) -> Any:
    """What never wins a minimum of such numbers."""
    return jnp.inf if jnp.issubdtype(x.dtype, jnp.inexact) else np.iinfo(x.dtype).max


def masked_axes(x: jax.Array, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    """The axes to reduce: all of them for None and for an empty list; none of a scalar."""
    if x.ndim == 0:
        return ()
    return tuple(range(x.ndim)) if dim is None or dim == () or dim == [] else (dim,) if isinstance(dim, int) else tuple(dim)


def masked_sum(
    x: jax.Array, dim: int | Sequence[int] | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.sum.html"""
    return jnp.sum(masked_input(x, mask, 0), masked_axes(x, dim), dtype=dtype, keepdims=keepdim)


def masked_prod(
    x: jax.Array, dim: int | Sequence[int] | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.prod.html"""
    return jnp.prod(masked_input(x, mask, 1), masked_axes(x, dim), dtype=dtype, keepdims=keepdim)


def masked_cumsum(x: jax.Array, dim: int, *, dtype: DTypeLike | None = None, mask: MaskOrNone = None) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.cumsum.html"""
    return cumsum(masked_input(x, mask, 0), dim, x.dtype if dtype is None else dtype)


def masked_cumprod(x: jax.Array, dim: int, *, dtype: DTypeLike | None = None, mask: MaskOrNone = None) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.cumprod.html"""
    return cumprod(masked_input(x, mask, 1), dim, x.dtype if dtype is None else dtype)


def masked_amax(
    x: jax.Array, dim: int | Sequence[int] | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.amax.html"""
    return jnp.max(masked_input(x, mask, masked_lowest(x)), masked_axes(x, dim), keepdims=keepdim).astype(dtype or x.dtype)


def masked_amin(
    x: jax.Array, dim: int | Sequence[int] | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.amin.html"""
    return jnp.min(masked_input(x, mask, masked_highest(x)), masked_axes(x, dim), keepdims=keepdim).astype(dtype or x.dtype)


def masked_argmax(
    x: jax.Array, dim: int | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """The place of the largest, in the dtype of `x` (https://pytorch.org/docs/stable/generated/torch.masked.argmax.html)."""
    return jnp.argmax(masked_input(x, mask, masked_lowest(x)), dim if x.ndim else None, keepdims=keepdim).astype(dtype or x.dtype)


def masked_argmin(
    x: jax.Array, dim: int | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """The place of the smallest, in the dtype of `x` (https://pytorch.org/docs/stable/generated/torch.masked.argmin.html)."""
    return jnp.argmin(masked_input(x, mask, masked_highest(x)), dim if x.ndim else None, keepdims=keepdim).astype(dtype or x.dtype)


def masked_count(x: jax.Array, axes: tuple[int, ...], keepdim: bool, mask: MaskOrNone) -> jax.Array:
    """How many elements the mask lets through."""
    kept = jnp.ones(x.shape, bool) if mask is None else jnp.broadcast_to(mask.astype(bool), x.shape)
    return jnp.sum(kept, axes, keepdims=keepdim)


def masked_mean(
    x: jax.Array, dim: int | Sequence[int] | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """NaN where nothing is let through (https://pytorch.org/docs/stable/generated/torch.masked.mean.html)."""
    total = masked_sum(x, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / masked_count(x, masked_axes(x, dim), keepdim, mask).astype(total.dtype)


def masked_median(
    x: jax.Array, dim: int = -1, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """The lower median; integers must have one (https://pytorch.org/docs/stable/generated/torch.masked.median.html)."""
    floating = jnp.issubdtype(x.dtype, jnp.floating)
    values = x if floating else x.astype(jnp.float32)
    result = nanmedian_with_indices(masked_input(values, mask, jnp.nan), dim, keepdim).values
    return result if floating else result.astype(dtype or x.dtype)


def masked_logsumexp(
    x: jax.Array, dim: int | Sequence[int] | None = None, *, keepdim: bool = False, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.logsumexp.html"""
    kept = masked_input(x, mask, masked_lowest(x))
    kept = kept if jnp.issubdtype(x.dtype, jnp.inexact) else kept.astype(float)
    return jax.nn.logsumexp(kept, masked_axes(x, dim), keepdims=keepdim).astype(dtype or x.dtype)


def masked_logaddexp(
    x: jax.Array, other: jax.Array, *, dtype: DTypeLike | None = None, input_mask: MaskOrNone = None, other_mask: MaskOrNone = None
) -> jax.Array:
    """https://pytorch.org/docs/stable/masked.html"""
    return jnp.logaddexp(masked_input(x, input_mask, masked_lowest(x)), masked_input(other, other_mask, masked_lowest(other))).astype(
        dtype or x.dtype
    )


def masked_norm(
    x: jax.Array,
    ord: float = 2.0,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: MaskOrNone = None,
) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.norm.html"""
    fill = jnp.inf if ord == -jnp.inf else 0
    return vector_norm(masked_input(x, mask, fill), ord, masked_axes(x, dim), keepdim, dtype or x.dtype)


def masked_var(
    x: jax.Array,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: MaskOrNone = None,
) -> jax.Array:
    """NaN where nothing is let through (https://pytorch.org/docs/stable/generated/torch.masked.var.html)."""
    axes = masked_axes(x, dim)
    wanted = dtype or (x.dtype if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.float32)
    compute = wanted if jnp.issubdtype(wanted, jnp.inexact) else jnp.float32
    taken = (1.0 if unbiased is None else float(unbiased)) if correction is None else float(correction)
    count = masked_count(x, axes, True, mask)
    mean = masked_sum(x, axes, keepdim=True, dtype=wanted, mask=mask) / count.astype(compute)
    spread = x - mean
    total = masked_sum(spread * jnp.conj(spread), axes, keepdim=keepdim, dtype=compute, mask=mask)
    real = jnp.zeros((), compute).real.dtype
    number = jnp.maximum(count.reshape(total.shape).astype(real) - taken, 0) if taken else count.reshape(total.shape).astype(real)
    return (total / number).astype(wanted)


def masked_std(
    x: jax.Array,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: MaskOrNone = None,
) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.std.html"""
    return jnp.sqrt(masked_var(x, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def masked_softmax(x: jax.Array, dim: int, *, dtype: DTypeLike | None = None, mask: MaskOrNone = None) -> jax.Array:
    """NaN where nothing is let through (https://pytorch.org/docs/stable/generated/torch.masked.softmax.html)."""
    return jax.nn.softmax(masked_input(x, mask, masked_lowest(x)).astype(dtype or x.dtype), dim if x.ndim else None)


def masked_log_softmax(x: jax.Array, dim: int, *, dtype: DTypeLike | None = None, mask: MaskOrNone = None) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.log_softmax.html"""
    return jax.nn.log_softmax(masked_input(x, mask, masked_lowest(x)).astype(dtype or x.dtype), dim if x.ndim else None)


def masked_softmin(x: jax.Array, dim: int, *, dtype: DTypeLike | None = None, mask: MaskOrNone = None) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.softmin.html"""
    return jax.nn.softmax(-masked_input(x, mask, masked_highest(x)).astype(dtype or x.dtype), dim if x.ndim else None)


def masked_normalize(
    x: jax.Array, ord: float, dim: int, *, eps: float = 1e-12, dtype: DTypeLike | None = None, mask: MaskOrNone = None
) -> jax.Array:
    """https://pytorch.org/docs/stable/generated/torch.masked.normalize.html"""
    size = masked_norm(x, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return masked_input(x, mask, 0) / jnp.maximum(size, eps)
