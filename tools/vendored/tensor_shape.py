"""Shape functions of torch that NumPy's have no equal for (https://pytorch.org/docs/stable/torch.html)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax


def _as_shape(sizes: tuple[int | Sequence[int], ...]) -> tuple[int, ...]:
    """Sizes given one by one, or as one sequence."""
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        only = sizes[0]
        return tuple(only) if isinstance(only, Sequence) else (only,)
    return tuple(size for size in sizes if isinstance(size, int))


def expand(x: jax.Array, *sizes: int | Sequence[int]) -> jax.Array:
    """Broadcast `x` to `sizes`; -1 keeps the size of that axis (https://pytorch.org/docs/stable/generated/torch.Tensor.expand.html)."""
    shape = _as_shape(sizes)
    offset = len(shape) - x.ndim
    return jnp.broadcast_to(x, tuple(x.shape[i - offset] if size == -1 else size for i, size in enumerate(shape)))


def flatten(x: jax.Array, start_dim: int = 0, end_dim: int = -1) -> jax.Array:
    """Merge the axes from `start_dim` to `end_dim`, both included (https://pytorch.org/docs/stable/generated/torch.flatten.html)."""
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :])


def unflatten(x: jax.Array, dim: int, sizes: Sequence[int]) -> jax.Array:
    """Split one axis into several; one of `sizes` may be -1 (https://pytorch.org/docs/stable/generated/torch.unflatten.html)."""
    dim %= x.ndim
    known = math.prod(size for size in sizes if size != -1)
    return x.reshape(*x.shape[:dim], *(x.shape[dim] // max(known, 1) if size == -1 else size for size in sizes), *x.shape[dim + 1 :])


def squeeze(x: jax.Array, dim: int | Sequence[int]) -> jax.Array:
    """Remove the named axes that have size 1, and keep the others (https://pytorch.org/docs/stable/generated/torch.squeeze.html)."""
    if x.ndim == 0:
        return x
    dims = (dim,) if isinstance(dim, int) else dim
    return jnp.squeeze(x, tuple(d % x.ndim for d in dims if x.shape[d] == 1))


def flip(x: jax.Array, *dims: int | Sequence[int]) -> jax.Array:
    """Reverse the order along `dims` (https://pytorch.org/docs/stable/generated/torch.flip.html)."""
    return jnp.flip(x, _as_shape(dims))


def chunk(x: jax.Array, chunks: int, dim: int = 0) -> tuple[jax.Array, ...]:
    """At most `chunks` parts of equal size but for the last (https://pytorch.org/docs/stable/generated/torch.chunk.html)."""
    size = -(-x.shape[dim] // chunks)
    return split(x, size, dim) if size else split(x, [0] * chunks, dim)


def split(x: jax.Array, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[jax.Array, ...]:
    """Parts of one size (the last may be smaller) or of the given sizes (https://pytorch.org/docs/stable/generated/torch.split.html)."""
    length = x.shape[dim]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        bounds = [*range(0, length, size), length] if length else [0, 0]
    else:
        bounds = [0, *itertools.accumulate(split_size_or_sections)]
        if bounds[-1] != length:
            raise ValueError(f"sizes {tuple(split_size_or_sections)} do not add up to {length}")
    return tuple(lax.slice_in_dim(x, start, end, axis=dim) for start, end in itertools.pairwise(bounds))


def put_parts(x: jax.Array, parts: Sequence[jax.Array], axis: int = 0) -> jax.Array:
    """`x` with new values for its first parts along an axis: pieces of it that were cut there, or slices that lack the axis.

    What comes behind the parts stays as it is; with no parts all of `x` does.
    """
    if not parts:
        return x
    new = jnp.stack(parts, axis) if parts[0].ndim < x.ndim else jnp.concatenate(parts, axis)
    return lax.dynamic_update_slice_in_dim(x, new, 0, axis)


def sliding_windows(x: jax.Array, dimension: int, size: int, step: int) -> jax.Array:
    """All windows of `size` along an axis, as a new last axis (https://pytorch.org/docs/stable/generated/torch.Tensor.unfold.html)."""
    if x.ndim == 0:
        return jnp.broadcast_to(x, (size,))
    dimension %= x.ndim
    starts = jnp.arange(0, x.shape[dimension] - size + 1, step)
    windows = jnp.take(x, starts[:, None] + jnp.arange(size), axis=dimension)
    return jnp.moveaxis(windows, dimension + 1, -1)


def sum_to_size(x: jax.Array, *sizes: int | Sequence[int]) -> jax.Array:
    """Sum `x` over the axes that broadcasting would have added (https://pytorch.org/docs/stable/generated/torch.Tensor.sum_to_size.html)."""
    shape = _as_shape(sizes)
    offset = x.ndim - len(shape)
    axes = tuple(i for i in range(x.ndim) if i < offset or (shape[i - offset] == 1 and x.shape[i] != 1))
    return x.sum(axis=axes).reshape(shape) if axes or not shape else x


def select_scatter(x: jax.Array, src: jax.Array, dim: int, index: int) -> jax.Array:
    """`x` with `src` written at `index` along `dim` (https://pytorch.org/docs/stable/generated/torch.select_scatter.html)."""
    return jnp.moveaxis(jnp.moveaxis(x, dim, 0).at[index].set(src), 0, dim)


def slice_scatter(x: jax.Array, src: jax.Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> jax.Array:
    """`x` with `src` written into a slice along `dim` (https://pytorch.org/docs/stable/generated/torch.slice_scatter.html)."""
    window = (slice(None),) * (dim % x.ndim) + (slice(start, end, step),)
    return x.at[window].set(src)


def strided_places(size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> jax.Array:
    """Where in memory the elements of a strided view lie, in its shape."""
    axes = (lax.broadcasted_iota(int, tuple(size), axis) * step for axis, step in enumerate(stride))
    return sum(axes, jnp.full(tuple(size), offset or 0, int))


def as_strided(x: jax.Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> jax.Array:
    """The elements of a contiguous array at these steps in memory (https://pytorch.org/docs/stable/generated/torch.as_strided.html)."""
    return x.reshape(-1)[strided_places(size, stride, storage_offset)]


def as_strided_scatter(
    x: jax.Array, src: jax.Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> jax.Array:
    """A contiguous array with `src` in the place of a strided view (https://pytorch.org/docs/stable/generated/torch.as_strided_scatter.html)."""
    places = strided_places(size, stride, storage_offset)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return x.reshape(-1).at[places].set(src).reshape(x.shape)
    flat, fixed = x.reshape(-1), lax.stop_gradient(x.reshape(-1))
    passed = jnp.zeros_like(flat).at[places].set((flat - fixed)[places])  # torch passes the gradient there, and nowhere else
    return (fixed.at[places].set(src) + passed).reshape(x.shape)


def contiguous_strides(x: jax.Array, dim: int | None = None) -> tuple[int, ...] | int:
    """The strides of a contiguous tensor of this shape, or of one axis (https://pytorch.org/docs/stable/generated/torch.Tensor.stride.html)."""
    strides = tuple(math.prod(max(size, 1) for size in x.shape[axis + 1 :]) for axis in range(x.ndim))
    return strides if dim is None else strides[dim]


def meshgrid(tensors: Sequence[jax.Array], indexing: str = "ij") -> list[jax.Array]:
    """Grids of coordinates from a sequence of vectors (https://pytorch.org/docs/stable/generated/torch.meshgrid.html)."""
    return jnp.meshgrid(*map(jnp.atleast_1d, tensors), indexing=indexing)


def cat(tensors: Sequence[jax.Array], axis: int = 0) -> jax.Array:
    """Concatenation that leaves out vectors without elements, but not their dtypes (https://pytorch.org/docs/stable/generated/torch.cat.html)."""
    kept = [x for x in tensors if x.shape != (0,)]
    return jnp.concatenate(kept, axis=axis, dtype=jnp.result_type(*tensors)) if kept else jnp.zeros(0, jnp.result_type(*tensors))


def cartesian_prod(*tensors: jax.Array) -> jax.Array:
    """All combinations of one element of each vector, as rows (https://pytorch.org/docs/stable/generated/torch.cartesian_prod.html)."""
    if len(tensors) == 1:
        return tensors[0]
    return jnp.stack(jnp.meshgrid(*tensors, indexing="ij"), axis=-1).reshape(-1, len(tensors))


def combinations(x: jax.Array, r: int = 2, with_replacement: bool = False) -> jax.Array:
    """All choices of `r` elements of a vector, as rows (https://pytorch.org/docs/stable/generated/torch.combinations.html)."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(x.shape[0]), r))
    return x[jnp.array(rows, dtype=int).reshape(len(rows), r)] if r else jnp.zeros((0,), x.dtype)
