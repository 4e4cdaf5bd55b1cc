"""Moves the arrays of a match: from torch's names and axis order to the port's, and back."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from migrate_agent.tools.checkpoint.files import Array, CheckpointError
from migrate_agent.tools.checkpoint.matching import Entry, Match


def to_jax(match: Match) -> dict[str, Array]:
    """Path of a variable → array as the port holds it; a tied one stands once.

    Integers get the port's dtype (JAX has no int64 unless asked), floats keep the checkpoint's. Raises `CheckpointError` where tied names
    carry different arrays, and where an integer does not fit.
    """
    found: dict[str, Array] = {}
    first: dict[str, str] = {}
    for row in match.rows:
        if row.entry is None or row.tensor is None:
            continue
        array = _fitting(row.tensor.read(), row.entry)
        array = array if row.entry.axes is None else array.transpose(np.argsort(row.entry.axes))
        array = np.asarray(array, order="C")
        if row.entry.path in found and not _same(found[row.entry.path], array):
            raise CheckpointError(
                f"{first[row.entry.path]} and {row.entry.name} are one tied variable in the port, but differ in the checkpoint"
            )
        first.setdefault(row.entry.path, row.entry.name)
        found.setdefault(row.entry.path, array)
    return found


def to_torch(match: Match) -> dict[str, Array]:
    """Torch's name → array in torch's axis order; a tied one stands under each of its names."""
    pairs = ((row.entry, row.tensor.read()) for row in match.rows if row.entry is not None and row.tensor is not None)
    return {entry.name: np.asarray(array if entry.axes is None else array.transpose(entry.axes), order="C") for entry, array in pairs}


def tied(entries: Iterable[Entry]) -> list[tuple[str, ...]]:
    """The names of each variable that has several."""
    names: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        names[entry.path] = (*names.get(entry.path, ()), entry.name)
    return [group for group in names.values() if len(group) > 1]


def _fitting(array: Array, entry: Entry) -> Array:
    wanted = np.dtype(entry.dtype)
    if not (np.issubdtype(array.dtype, np.integer) and np.issubdtype(wanted, np.integer)) or array.dtype == wanted:
        return array
    cast: Array = array.astype(wanted)
    if not np.array_equal(cast, array):
        raise CheckpointError(f"{entry.name} holds integers that do not fit into the port's {wanted}")
    return cast


def _same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
