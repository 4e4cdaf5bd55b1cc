"""Histograms (https://pytorch.org/docs/stable/generated/torch.histogram.html)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Histogram(NamedTuple):
    """What `torch.histogram` gives."""

    hist: jax.Array
    bin_edges: jax.Array


class HistogramDD(NamedTuple):
    """What `torch.histogramdd` gives."""

    hist: jax.Array
    bin_edges: tuple[jax.Array, ...]


def histogram_edges(x: jax.Array, bins: int | jax.Array, span: Sequence[float] | None) -> jax.Array:
    """The edges themselves, or `bins` equal bins over `span` (by default what `x` spans, widened where that is nothing)."""
    if not isinstance(bins, int):
        return bins
    if span is None and not x.size:
        span = (0, 1)
    low, high = (jnp.asarray(edge, x.dtype) for edge in span) if span is not None else (x.min(), x.max())
    empty = low == high
    return jnp.linspace(jnp.where(empty, low - 0.5, low), jnp.where(empty, high + 0.5, high), bins + 1, dtype=x.dtype)


def histogramdd(
    x: jax.Array,
    bins: int | Sequence[int | jax.Array],
    *,
    range: Sequence[float] | None = None,
    weight: jax.Array | None = None,
    density: bool = False,
) -> HistogramDD:
    """Counts (or weights, or densities) of points (…, D) in a grid of bins; the last edges belong to their bins.

    https://pytorch.org/docs/stable/generated/torch.histogramdd.html
    """
    points = x.reshape(-1, x.shape[-1])
    weights = jnp.ones(points.shape[0], x.dtype) if weight is None else weight.reshape(-1)
    inside = jnp.ones(points.shape[0], bool)
    place = jnp.zeros(points.shape[0], int)
    edges, sizes = [], []
    each = (bins,) * points.shape[1] if isinstance(bins, int) else bins
    for axis, chosen in enumerate(each):
        edge = histogram_edges(points[:, axis], chosen, None if range is None else range[2 * axis : 2 * axis + 2])
        count = edge.shape[0] - 1
        found = jnp.searchsorted(edge, points[:, axis], side="right") - 1
        found = jnp.where(points[:, axis] == edge[-1], count - 1, found)
        inside = inside & (found >= 0) & (found < count)
        place = place * count + found
        edges.append(edge)
        sizes.append(count)
    total = jnp.zeros(sizes, x.dtype).reshape(-1).at[jnp.where(inside, place, 0)].add(jnp.where(inside, weights, 0)).reshape(sizes)
    if density:
        total = total / total.sum()
        for axis, edge in enumerate(edges):
            total = total / jnp.expand_dims(jnp.diff(edge), [i for i, _ in enumerate(sizes) if i != axis])
    return HistogramDD(total, tuple(edges))


def histogram(
    x: jax.Array,
    bins: int | jax.Array,
    *,
    range: Sequence[float] | None = None,
    weight: jax.Array | None = None,
    density: bool = False,
) -> Histogram:
    """`histogramdd` of all elements (https://pytorch.org/docs/stable/generated/torch.histogram.html)."""
    hist, (edges,) = histogramdd(x.reshape(-1, 1), (bins,), range=range, weight=weight, density=density)
    return Histogram(hist, edges)
