"""Moves the arrays of a match: from torch's names and axis order to the port's, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from migrate_agent.tools.checkpoint.files import Array, CheckpointError
from migrate_agent.tools.checkpoint.matching import Entry, Match


def to_jax(match: Match) -> dict[str, Array]:
    """Path of a variable → array in the port's axis order, C-contiguous; a tied variable appears once.

    Integers get the port's dtype (JAX has no int64 unless asked), floats keep the checkpoint's. Raises `CheckpointError` where tied names
    carry different arrays, and where an integer does not fit.
    """
    arrays: dict[tuple[str, tuple[int, ...]], Array] = {}
    first: dict[tuple[str, tuple[int, ...]], str] = {}
    for row in match.rows:
        if row.entry is None or row.tensor is None:
            continue
        array = _cast_integers(row.tensor.read(), row.entry)
        # `axes` leads from the port's array to torch's; `argsort` of a permutation is its inverse.
        array = array if row.entry.axes is None else array.transpose(np.argsort(row.entry.axes))
        array = np.asarray(array, order="C")
        part = row.entry.place
        if part in arrays and not _bit_equal(arrays[part], array):
            raise CheckpointError(f"{first[part]} and {row.entry.name} are one tied variable in the port, but differ in the checkpoint")
        first.setdefault(part, row.entry.name)
        arrays.setdefault(part, array)
    return _stacked(arrays)


def _stacked(arrays: Mapping[tuple[str, tuple[int, ...]], Array]) -> dict[str, Array]:
    """Path → array; the arrays of layers that share a variable as one."""
    whole: dict[str, Array] = {}
    for (path, index), array in arrays.items():
        if not index:
            whole[path] = array
        elif path not in whole:
            indices = [other for name, other in arrays if name == path]
            counts = tuple(max(numbers) + 1 for numbers in zip(*indices, strict=True))
            whole[path] = np.empty((*counts, *array.shape), array.dtype)
        if index:
            whole[path][index] = array
    return whole


def to_torch(match: Match) -> dict[str, Array]:
    """Torch's name → array in torch's axis order; a tied variable appears under each of its names."""
    pairs = ((row.entry, row.tensor.read()) for row in match.rows if row.entry is not None and row.tensor is not None)
    return {entry.name: _in_torch(entry, array) for entry, array in pairs}


def _in_torch(entry: Entry, array: Array) -> Array:
    part = array[entry.index] if entry.index else array
    return np.asarray(part if entry.axes is None else part.transpose(entry.axes), order="C")


def _cast_integers(array: Array, entry: Entry) -> Array:
    dtype = np.dtype(entry.dtype)
    if not (np.issubdtype(array.dtype, np.integer) and np.issubdtype(dtype, np.integer)) or array.dtype == dtype:
        return array
    cast: Array = array.astype(dtype)
    # A silent wrap-around of an index or a counter would load as a valid checkpoint.
    if not np.array_equal(cast, array):
        raise CheckpointError(f"{entry.name} holds integers that do not fit into the port's {dtype}")
    return cast


def _bit_equal(one: Array, other: Array) -> bool:
    # Bytes, not values: tied weights with NaN at the same place are equal.
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
