"""Arrays by name in safetensors files, complex ones too, and recipes in the place of those that a seed tells. numpy only."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from safetensors.numpy import save as serialised

from migrate_agent.tools.harness.common.seeded_arrays import Recipe, SeededArray
from migrate_agent.tools.harness.common.sketches import Extremes, Sketch

COMPLEX = "@complex"
SEEDED = "@seeded"
"""Marks the recipe of an array that is drawn when the file is read."""
DRAWING_THREADS = 2
"""Random numbers are drawn without the interpreter, so that each array of a large state has a thread."""
EXTREMES = "@extremes"
"""Marks the extremes that belong to a sketch of the same name."""

with suppress(ImportError):  # makes bfloat16 known to numpy, for files that hold it; the original's side may do without
    import_module("ml_dtypes")


def save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays (any numpy dtype of numbers or booleans); makes the folder. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    contents = dict(_stored(name, value) for name, value in arrays.items())
    contents |= {
        name + EXTREMES: value.extremes.to_array() for name, value in arrays.items() if isinstance(value, Sketch) and value.extremes
    }
    try:
        save_file(contents, path)
    except SafetensorError:  # has no error number, which says whether the disk is full: this raises it with one
        path.write_bytes(serialised(contents))


def _stored(name: str, array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    if isinstance(array, SeededArray) and array.recipe is not None:
        return name + SEEDED, array.recipe.to_bytes()
    value = np.asarray(array)
    if value.dtype.kind != "c":
        # `ascontiguousarray` makes an array of rank 1 of a scalar.
        return name, np.ascontiguousarray(value).reshape(value.shape)
    # `stack` keeps the order of axes in memory, and `save_file` writes the memory as it lies.
    return name + COMPLEX, np.ascontiguousarray(np.stack([value.real, value.imag], axis=-1))


def load(path: Path) -> dict[str, NDArray[Any]]:
    """Read arrays that `save` wrote. Raises `OSError`, and `ValueError` where the file is no safetensors file."""
    try:
        stored = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path.name} is no safetensors file: {error}") from error
    arrays = dict(_all_restored({name: value for name, value in stored.items() if not name.endswith(EXTREMES)}))
    of_sketches = {name.removesuffix(EXTREMES): value for name, value in stored.items() if name.endswith(EXTREMES)}
    return arrays | {name: Sketch.of(arrays[name], Extremes.from_array(value)) for name, value in of_sketches.items() if name in arrays}


def _all_restored(stored: Mapping[str, NDArray[Any]]) -> Iterable[tuple[str, NDArray[Any]]]:
    if sum(name.endswith(SEEDED) for name in stored) < 2:
        return itertools.starmap(_restored, stored.items())
    with ThreadPoolExecutor(DRAWING_THREADS) as pool:
        return [*pool.map(_restored, stored.keys(), stored.values())]


def _restored(name: str, value: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    if name.endswith(SEEDED):
        return name.removesuffix(SEEDED), Recipe.from_bytes(value).draw()
    if not name.endswith(COMPLEX):
        return name, value
    return name.removesuffix(COMPLEX), np.asarray(value[..., 0] + 1j * value[..., 1])


def sample_indices(count: int, limit: int) -> NDArray[np.int64]:
    """At most `limit` of the indices below `count`, sorted int64 [n]; the same on every call."""
    if count <= limit:
        return np.arange(count)
    return np.sort(np.random.default_rng(count).choice(count, limit, replace=False))
