"""Maps the entries of torch's `state_dict` to the leaves of a port's parameter tree. numpy only.

Entries that the port's file does not list are matched where names and shapes allow only one leaf.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Tokens = tuple[str, ...]
Shape = tuple[int, ...]

COLLECTIONS = ("params", "batch_stats")
LEAF_NAMES = {"kernel": "weight", "scale": "weight", "embedding": "weight", "mean": "running_mean", "var": "running_var"}
"""Flax's leaf names → torch's."""
COUNTERS = ("num_batches_tracked",)
"""Buffers of torch that other frameworks do not have."""


class MapError(ValueError):
    """A weight map that does not fit the two sides; the message names what is missing or wrong."""


@dataclass(frozen=True)
class Place:
    """The leaf of an entry: torch's array, reshaped to `reshape` and transposed by `transpose` where given, is leaf `leaf`, or the part `where` of it,
    of shape `shape`. Layers that are scanned have their parameters stacked in one leaf, and fused projections theirs side by side."""

    leaf: int
    shape: Shape
    reshape: Shape | None = None
    transpose: tuple[int, ...] | None = None
    where: tuple[int | slice, ...] = ()

    def get(self, leaf: Array, shape: Shape) -> Array:
        """Torch's array of this shape, from its place of the leaf."""
        return self.to_torch(leaf[self.where or ...], shape)

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
    """A leaf of the port's tree: its path, its shape, and whether it is trained (None where the port does not say)."""

    path: Tokens
    shape: Shape
    trained: bool | None = None

    def __str__(self) -> str:
        return "/".join(self.path)


def tokens(path: str) -> Tokens:
    """`layers[0].weight`, `params/Dense_0/kernel` → their parts."""
    return tuple(part for part in re.split(r"[./\[\]'\"]+", path) if part)


def match(
    shapes: Mapping[str, Shape],
    trained: Mapping[str, bool],
    leaves: Sequence[Leaf],
    table: Mapping[str, Any],
    tied: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, Place], list[str]]:
    """Where each torch name lies, and the names that the port does not keep. `table` is the file's table; `tied` has names that share the array of
    an earlier one. Raises `MapError`."""
    unknown = [name for name in table if name not in shapes]
    if unknown:
        raise MapError(f"the weight map names what the original does not have: {', '.join(unknown[:5])}")
    omitted = [name for name, row in table.items() if row is False]
    if wrong := [name for name in omitted if trained[name]]:
        raise MapError(f"parameters cannot be left out: {', '.join(wrong[:5])}")
    locations = {name: _given(name, row, leaves) for name, row in table.items() if row is not False}
    _match_names(shapes, leaves, locations, omitted)
    _match_tied(leaves, locations, omitted, tied)
    _match_shapes(shapes, trained, leaves, locations, omitted)
    _match_tied(leaves, locations, omitted, tied)
    omitted += [name for name in shapes if name not in locations and name not in omitted and name.rpartition(".")[2] in COUNTERS]
    missing = [name for name in shapes if name not in locations and name not in omitted]
    used = {location.leaf for location in locations.values()}
    spare = [str(leaf) for index, leaf in enumerate(leaves) if index not in used]
    if missing or spare:
        problems = [f"without counterpart in the port: {', '.join(missing[:8])}"] if missing else []
        problems += [f"without counterpart in the original: {', '.join(spare[:8])}"] if spare else []
        raise MapError(f"{'; '.join(problems)}; say in the weight map what belongs together")
    return locations, omitted


def _match_tied(leaves: Sequence[Leaf], locations: dict[str, Place], omitted: Sequence[str], tied: Mapping[str, str]) -> None:
    """Names of one array in torch are where the other is, either way, unless the port has a leaf of its own for it."""
    for one, other in (*tied.items(), *((other, one) for one, other in tied.items())):
        if one not in locations and one not in omitted and other in locations:
            locations[one] = locations[other]


def _given(name: str, row: Any, leaves: Sequence[Leaf]) -> Place:
    """A row of the file: a path, or a table with `path` and perhaps `transpose` and `reshape`."""
    table: dict[str, Any] = {"path": row} if isinstance(row, str) else dict(row)
    path = tokens(str(table["path"]))
    index = next((i for i, leaf in enumerate(leaves) if leaf.path == path or (leaf.path[1:] == path and leaf.path[0] in COLLECTIONS)), None)
    if index is None:
        near = ", ".join(str(leaf) for leaf in leaves[:12])
        raise MapError(f"{name}: the port has no {table['path']} (it has {near}{', …' if len(leaves) > 12 else ''})")
    transpose, reshape, where = table.get("transpose"), table.get("reshape"), _part(name, table, leaves[index].shape)
    if transpose is not None and sorted(transpose) != list(range(len(transpose))):
        raise MapError(f"{name}: transpose {list(transpose)} is no order of axes")
    shape = np.broadcast_to(0, leaves[index].shape)[where or ...].shape
    return Place(index, shape, tuple(reshape) if reshape is not None else None, tuple(transpose) if transpose is not None else None, where)


def _part(name: str, table: Mapping[str, Any], shape: Shape) -> tuple[int | slice, ...]:
    """The part of a leaf: `index = 2` is the third element of its first axis, `part = [1, 0, 16]` are the first sixteen of axis 1."""
    index, part = table.get("index"), table.get("part")
    start = () if index is None else (int(index),)
    if start and not (shape and 0 <= start[0] < shape[0]):
        raise MapError(f"{name}: the leaf of shape {list(shape)} has no element {index}")
    if part is None:
        return start
    axis, low, high = (int(number) for number in part)
    if not (len(start) <= axis < len(shape) and 0 <= low < high <= shape[axis]):
        raise MapError(f"{name}: the leaf of shape {list(shape)} has no part {list(part)}")
    return (*start, *(slice(None) for _ in range(axis - len(start))), slice(low, high))


def _match_names(shapes: Mapping[str, Shape], leaves: Sequence[Leaf], locations: dict[str, Place], omitted: Sequence[str]) -> None:
    """Match names that are equal up to Flax's spelling."""
    used = {location.leaf for location in locations.values()}
    by_name: dict[Tokens, list[int]] = {}
    for index, leaf in enumerate(leaves):
        if index not in used:
            by_name.setdefault(_normal(leaf.path), []).append(index)
    for name, shape in shapes.items():
        candidates = by_name.get(_normal(tuple(name.split("."))), [])
        if (
            name not in locations
            and name not in omitted
            and len(candidates) == 1
            and (location := fitting(shape, candidates[0], leaves[candidates[0]]))
        ):
            locations[name] = location


def _match_shapes(
    shapes: Mapping[str, Shape], trained: Mapping[str, bool], leaves: Sequence[Leaf], locations: dict[str, Place], omitted: Sequence[str]
) -> None:
    """Match the remaining entries that fit one leaf alone, which no other entry fits, until there are none."""
    while True:
        used = {location.leaf for location in locations.values()}
        rest = [name for name in shapes if name not in locations and name not in omitted]
        options = {name: dict(_options(shapes[name], trained[name], leaves, used)) for name in rest}
        takers: dict[int, list[str]] = {}
        for name, by_index in options.items():
            for index in by_index:
                takers.setdefault(index, []).append(name)
        sure = {name: next(iter(by_index.items())) for name, by_index in options.items() if len(by_index) == 1}
        new = {name: location for name, (index, location) in sure.items() if takers[index] == [name]}
        # Each match removes a leaf, which may leave only one for another entry.
        if not new:
            return
        locations |= new


def _options(shape: Shape, trained: bool, leaves: Sequence[Leaf], used: set[int]) -> Iterator[tuple[int, Place]]:
    for index, leaf in enumerate(leaves):
        if index not in used and leaf.trained in (None, trained) and (location := fitting(shape, index, leaf)):
            yield index, location


def _normal(path: Tokens) -> Tokens:
    parts = path[1:] if path and path[0] in COLLECTIONS else path
    split = [piece for part in parts for piece in re.split(r"_(?=\d+$)", part)]
    return (*split[:-1], LEAF_NAMES.get(split[-1], split[-1])) if split else ()


def fitting(shape: Shape, index: int, leaf: Leaf) -> Place | None:
    """The usual conversion from torch's array to a leaf, or None: Flax's kernels have another order of axes, and axes of length 1 may differ."""
    if leaf.path[-1] == "kernel" and len(shape) == len(leaf.shape) > 1:
        count = len(shape)
        order = (*range(2, count), 1, 0)
        return Place(index, leaf.shape, None, order) if tuple(shape[axis] for axis in order) == leaf.shape else None
    if shape == leaf.shape:
        return Place(index, leaf.shape)
    bare = tuple(size for size in shape if size != 1) == tuple(size for size in leaf.shape if size != 1)
    return Place(index, leaf.shape) if bare and math.prod(shape) == math.prod(leaf.shape) else None
