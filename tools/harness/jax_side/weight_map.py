"""Which leaf of a port's parameter tree holds which entry of torch's `state_dict`, and how the one becomes the other. numpy only.

What a file does not say is matched where names and shapes leave one possibility only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Tokens = tuple[str, ...]
Shape = tuple[int, ...]

COLLECTIONS = ("params", "batch_stats")
LEAF_NAMES = {"kernel": "weight", "scale": "weight", "embedding": "weight", "mean": "running_mean", "var": "running_var"}
"""What Flax calls leaves that torch calls otherwise."""
COUNTERS = ("num_batches_tracked",)
"""Buffers of torch that other frameworks do not keep."""


class MapError(ValueError):
    """A weight map that does not fit the two sides; names what is left over or wrong."""


@dataclass(frozen=True)
class Place:
    """Torch's array, reshaped to `reshape` and transposed by `transpose` where given, is the leaf number `leaf`, of shape `shape`."""

    leaf: int
    shape: Shape
    reshape: Shape | None = None
    transpose: tuple[int, ...] | None = None

    def to_port(self, array: Array) -> Array:
        """Torch's array as the leaf. Raises `MapError` where the sizes do not fit."""
        try:
            moved = array if self.reshape is None else array.reshape(self.reshape)
            moved = moved if self.transpose is None else moved.transpose(self.transpose)
            return np.ascontiguousarray(moved).reshape(self.shape)
        except ValueError as error:
            raise MapError(f"an array of shape {list(array.shape)} does not become {list(self.shape)}: {error}") from error

    def to_torch(self, leaf: Array, shape: Shape) -> Array:
        """The leaf as torch's array of this shape."""
        before = self.reshape or shape
        moved = (
            leaf
            if self.transpose is None
            else leaf.reshape([before[axis] for axis in self.transpose]).transpose(np.argsort(self.transpose))
        )
        return np.ascontiguousarray(moved).reshape(shape)


@dataclass(frozen=True)
class Leaf:
    """A leaf of the port's tree: its path, shape, and whether it is trained (None where the port does not tell)."""

    path: Tokens
    shape: Shape
    trained: bool | None = None

    def __str__(self) -> str:
        return "/".join(self.path)


def tokens(path: str) -> Tokens:
    """`layers[0].weight`, `params/Dense_0/kernel` → their parts."""
    return tuple(part for part in re.split(r"[./\[\]'\"]+", path) if part)


def match(
    wanted: Mapping[str, Shape], trained: Mapping[str, bool], leaves: Sequence[Leaf], given: Mapping[str, Any]
) -> tuple[dict[str, Place], list[str]]:
    """Where each torch name lies, and the names that the port does not keep. `given` is the file's table. Raises `MapError`."""
    unknown = [name for name in given if name not in wanted]
    if unknown:
        raise MapError(f"the weight map names what the original does not have: {', '.join(unknown[:5])}")
    omitted = [name for name, row in given.items() if row is False]
    if wrong := [name for name in omitted if trained[name]]:
        raise MapError(f"parameters cannot be left out: {', '.join(wrong[:5])}")
    found = {name: _given(name, row, leaves) for name, row in given.items() if row is not False}
    _match_names(wanted, leaves, found, omitted)
    _match_shapes(wanted, trained, leaves, found, omitted)
    omitted += [name for name in wanted if name not in found and name not in omitted and name.rpartition(".")[2] in COUNTERS]
    missing = [name for name in wanted if name not in found and name not in omitted]
    used = {place.leaf for place in found.values()}
    spare = [str(leaf) for index, leaf in enumerate(leaves) if index not in used]
    if missing or spare:
        left = [f"without counterpart in the port: {', '.join(missing[:8])}"] if missing else []
        left += [f"without counterpart in the original: {', '.join(spare[:8])}"] if spare else []
        raise MapError(f"{'; '.join(left)}; say in the weight map what belongs together")
    return found, omitted


def _given(name: str, row: Any, leaves: Sequence[Leaf]) -> Place:
    """A row of the file: a path, or a table with `path` and perhaps `transpose` and `reshape`."""
    table: dict[str, Any] = {"path": row} if isinstance(row, str) else dict(row)
    wanted = tokens(str(table["path"]))
    index = next(
        (i for i, leaf in enumerate(leaves) if leaf.path == wanted or (leaf.path[1:] == wanted and leaf.path[0] in COLLECTIONS)), None
    )
    if index is None:
        near = ", ".join(str(leaf) for leaf in leaves[:12])
        raise MapError(f"{name}: the port has no {table['path']} (it has {near}{', …' if len(leaves) > 12 else ''})")
    transpose, reshape = table.get("transpose"), table.get("reshape")
    if transpose is not None and sorted(transpose) != list(range(len(transpose))):
        raise MapError(f"{name}: transpose {list(transpose)} is no order of axes")
    return Place(
        index, leaves[index].shape, tuple(reshape) if reshape is not None else None, tuple(transpose) if transpose is not None else None
    )


def _match_names(wanted: Mapping[str, Shape], leaves: Sequence[Leaf], found: dict[str, Place], omitted: Sequence[str]) -> None:
    """Names that are the same but for Flax's spelling."""
    used = {place.leaf for place in found.values()}
    by_name: dict[Tokens, list[int]] = {}
    for index, leaf in enumerate(leaves):
        if index not in used:
            by_name.setdefault(_normal(leaf.path), []).append(index)
    for name, shape in wanted.items():
        same = by_name.get(_normal(tuple(name.split("."))), [])
        if name not in found and name not in omitted and len(same) == 1 and (place := fitting(shape, same[0], leaves[same[0]])):
            found[name] = place


def _match_shapes(
    wanted: Mapping[str, Shape], trained: Mapping[str, bool], leaves: Sequence[Leaf], found: dict[str, Place], omitted: Sequence[str]
) -> None:
    """Of the rest, what fits one leaf only, which nothing else fits; again, until that tells no more."""
    while True:
        used = {place.leaf for place in found.values()}
        rest = [name for name in wanted if name not in found and name not in omitted]
        options = {name: dict(_options(wanted[name], trained[name], leaves, used)) for name in rest}
        takers: dict[int, list[str]] = {}
        for name, places in options.items():
            for index in places:
                takers.setdefault(index, []).append(name)
        sure = {name: next(iter(places.items())) for name, places in options.items() if len(places) == 1}
        new = {name: place for name, (index, place) in sure.items() if takers[index] == [name]}
        if not new:
            return
        found |= new


def _options(shape: Shape, trained: bool, leaves: Sequence[Leaf], used: set[int]) -> Iterator[tuple[int, Place]]:
    for index, leaf in enumerate(leaves):
        if index not in used and leaf.trained in (None, trained) and (place := fitting(shape, index, leaf)):
            yield index, place


def _normal(path: Tokens) -> Tokens:
    parts = path[1:] if path and path[0] in COLLECTIONS else path
    split = [piece for part in parts for piece in re.split(r"_(?=\d+$)", part)]
    return (*split[:-1], LEAF_NAMES.get(split[-1], split[-1])) if split else ()


def fitting(shape: Shape, index: int, leaf: Leaf) -> Place | None:
    """The usual way from torch's array to a leaf: Flax's kernels have their axes in another order, singleton axes may be added."""
    if leaf.path[-1] == "kernel" and len(shape) == len(leaf.shape) > 1:
        count = len(shape)
        order = (*range(2, count), 1, 0)
        return Place(index, leaf.shape, None, order) if tuple(shape[axis] for axis in order) == leaf.shape else None
    if shape == leaf.shape:
        return Place(index, leaf.shape)
    bare = tuple(size for size in shape if size != 1) == tuple(size for size in leaf.shape if size != 1)
    return Place(index, leaf.shape) if bare and math.prod(shape) == math.prod(leaf.shape) else None
