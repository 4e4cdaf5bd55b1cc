"""Moves the arrays of a match: from torch's names and axis order to the port's, and back."""

from __future__ import annotations

import numpy as np

from migrate_agent.tools.checkpoint.files import Array, CheckpointError
from migrate_agent.tools.checkpoint.matching import Entry, Match


def to_jax(match: Match) -> dict[str, Array]:
    """Path of a variable → array in the port's axis order, C-contiguous; a tied variable appears once.

    Integers get the port's dtype (JAX has no int64 unless asked), floats keep the checkpoint's. Raises `CheckpointError` where tied names
    carry different arrays, and where an integer does not fit.
    """
    arrays: dict[str, Array] = {}
    first: dict[str, str] = {}
    for row in match.rows:
        if row.entry is None or row.tensor is None:
            continue
        array = _cast_integers(row.tensor.read(), row.entry)
        # `axes` leads from the port's array to torch's; `argsort` of a permutation is its inverse.
        array = array if row.entry.axes is None else array.transpose(np.argsort(row.entry.axes))
        array = np.asarray(array, order="C")
        if row.entry.path in arrays and not _bit_equal(arrays[row.entry.path], array):
            raise CheckpointError(
                f"{first[row.entry.path]} and {row.entry.name} are one tied variable in the port, but differ in the checkpoint"
            )
        first.setdefault(row.entry.path, row.entry.name)
        arrays.setdefault(row.entry.path, array)
    return arrays


def to_torch(match: Match) -> dict[str, Array]:
    """Torch's name → array in torch's axis order; a tied variable appears under each of its names."""
    pairs = ((row.entry, row.tensor.read()) for row in match.rows if row.entry is not None and row.tensor is not None)
    return {entry.name: np.asarray(array if entry.axes is None else array.transpose(entry.axes), order="C") for entry, array in pairs}


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
