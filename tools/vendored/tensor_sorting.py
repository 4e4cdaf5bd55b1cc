"""Sorting (https://pytorch.org/docs/stable/generated/torch.sort.html)."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from migrate_agent.tools.vendored.tensor_reduction import ValuesAndIndices, reduce_by_index


def sort(x: jax.Array, dim: int = -1, descending: bool = False) -> ValuesAndIndices:
    """Sorted values (equal ones in their order) and where they stood (https://pytorch.org/docs/stable/generated/torch.sort.html)."""
    return reduce_by_index(lambda a, d: jnp.argsort(a, d, descending=descending), x, dim, keepdim=True)


def topk(x: jax.Array, k: int, dim: int = -1, largest: bool = True) -> ValuesAndIndices:
    """The `k` largest (or smallest) values and where they stood (https://pytorch.org/docs/stable/generated/torch.topk.html)."""
    return reduce_by_index(lambda a, d: lax.slice_in_dim(jnp.argsort(a, d, descending=largest), 0, k, axis=d), x, dim, keepdim=True)


def searchsorted(
    sorted_sequence: jax.Array,
    values: jax.Array,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: jax.Array | None = None,
) -> jax.Array:
    """Where `values` would stand in the last axis of `sorted_sequence`, row by row (https://pytorch.org/docs/stable/generated/torch.searchsorted.html)."""
    if sorter is not None:
        sorted_sequence = jnp.take_along_axis(sorted_sequence, sorter, axis=-1)
    side = side or ("right" if right else "left")
    values = jnp.asarray(values)
    if sorted_sequence.ndim == 1:
        found = jnp.searchsorted(sorted_sequence, values, side=side)
    else:
        count = math.prod(values.shape[:-1])
        rows, wanted = sorted_sequence.reshape(count, sorted_sequence.shape[-1]), values.reshape(count, values.shape[-1])
        found = jax.vmap(lambda row, value: jnp.searchsorted(row, value, side=side))(rows, wanted).reshape(values.shape)
    return found.astype(jnp.int32 if out_int32 else int)


def nonzero_static(x: jax.Array, size: int, fill_value: int = -1) -> jax.Array:
    """The places of the first `size` elements that are not 0, filled up (https://pytorch.org/docs/stable/generated/torch.nonzero_static.html)."""
    if not x.size:
        return jnp.full((size, x.ndim), fill_value)
    return jnp.argwhere(x, size=size, fill_value=fill_value)


def padded_nonzero(x: jax.Array) -> tuple[jax.Array, ...]:
    """The places of what is not 0, an array of `x.size` indices for each axis. Past the last place, the indices lie beyond the end.

    Reads by them give the last row there, and writes leave them out (https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html).
    """
    return jnp.nonzero(x, size=x.size, fill_value=jnp.iinfo(jnp.int32).max)


def take_places(x: jax.Array, indices: jax.Array) -> jax.Array:
    """`x[indices]` of places as `padded_nonzero` gives them along one axis. Past the last place, there is a copy of the first row, or 1 where there is no place.

    So what is computed row by row is finite, with its derivatives, wherever it is so for what is selected.
    """
    if not indices.size or not x.shape[0]:
        return jnp.ones((indices.size, *x.shape[1:]), x.dtype)
    exists = (indices < x.shape[0]).reshape(-1, *[1] * (x.ndim - 1))
    filler = jnp.where(exists[0], x[indices[0]], jnp.ones((), x.dtype))
    return jnp.where(exists, x[indices], lax.stop_gradient(filler))


def count_places(indices: jax.Array) -> jax.Array:
    """How many places there are in what `padded_nonzero` gives along one axis."""
    return jnp.sum(indices < jnp.iinfo(jnp.int32).max)


def next_places(indices: jax.Array, start: jax.Array | int) -> jax.Array:
    """The indices from `start` on, as many as there are places in what `padded_nonzero` gives along one axis; the others lie beyond the end."""
    end = jnp.iinfo(jnp.int32).max
    return jnp.where(indices < end, start + jnp.arange(indices.size), end)


def padded_range(size: int, start: jax.Array | int, stop: jax.Array | int | None = None) -> jax.Array:
    """The places from `start` to `stop` on an axis of this size, as in a slice: `size` indices, of which those outside lie beyond the end.

    Writes by them leave these out (https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html).
    """
    first, last = (jnp.where(jnp.asarray(bound) < 0, bound + size, bound) for bound in (start, size if stop is None else stop))
    places = jnp.arange(size)
    return jnp.where((first <= places) & (places < last), places, size)


def histc(x: jax.Array, bins: int = 100, min: float = 0, max: float = 0) -> jax.Array:
    """Counts of the values in equal bins between `min` and `max`, or the range of `x` where both are equal.

    https://pytorch.org/docs/stable/generated/torch.histc.html
    """
    low, high = (x.min(), x.max()) if min == max and x.size else (jnp.asarray(min), jnp.asarray(max))
    low, high = jnp.where(low == high, low - 1, low), jnp.where(low == high, high + 1, high)
    inside = (x >= low) & (x <= high)
    place = jnp.clip(((x - low) / (high - low) * bins).astype(int), 0, bins - 1)
    return jnp.zeros(bins, x.dtype).at[place.reshape(-1)].add(inside.reshape(-1).astype(x.dtype))
