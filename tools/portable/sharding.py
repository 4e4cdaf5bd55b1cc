"""Proposes the mesh axis of each axis of a parameter, by the type of its layer, for data, FSDP and tensor parallelism.

`data` splits the batch; `fsdp` splits the batch and every parameter (its largest axis that divides); `model` splits linear maps in turn by column
and by row, as Megatron-LM does (https://arxiv.org/abs/1909.08053), so that one reduction closes each pair. Any of these is numerically sound:
the compiler puts in what communication the shardings need. Axes that do not divide stay whole.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

AXES = ("data", "fsdp", "model")
Spec = tuple[Any, ...]


class MeshError(ValueError):
    """An invalid mesh; one line of reason."""


def parse_mesh(text: str) -> dict[str, int]:
    """`data=4,model=2` as sizes by axis. Raises `MeshError`."""
    sizes: dict[str, int] = {}
    for part in text.split(","):
        row = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+)\s*", part)
        if not row or row[1] not in AXES or row[1] in sizes or int(row[2]) < 1:
            raise MeshError(f"{text!r} is no mesh: write sizes of {', '.join(AXES)}, such as data=4,model=2")
        sizes[row[1]] = int(row[2])
    return sizes


@dataclass(frozen=True)
class PlacedParameter:
    """One parameter: the mesh axis of each of its axes (None: whole), and why."""

    path: str
    shape: tuple[int, ...]
    layer: str
    spec: Spec
    why: str


@dataclass(frozen=True)
class Proposal:
    """Where every parameter lies, and how inputs and activations are split."""

    axes: Mapping[str, int]
    placed: tuple[PlacedParameter, ...]
    activations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    _by_path: Mapping[str, PlacedParameter] = field(default_factory=dict, repr=False)

    def spec_of(self, row: Mapping[str, Any]) -> Spec:
        """The spec of a program's argument: a parameter's own, and that of the parameter that an optimiser's state belongs to."""
        path, shape = str(row["path"]), tuple(row["shape"])
        if row["role"] == "optimiser":
            path = next((name for name in self._by_path if path == name or path.endswith(f"/{name}")), "")
        parameter = self._by_path.get(path) if row["role"] in ("parameter", "optimiser") else None
        return parameter.spec if parameter is not None and parameter.shape == shape else ()

    def batch_axes(self) -> list[str]:
        """The mesh axes that share the batch."""
        return [axis for axis in ("data", "fsdp") if self.axes.get(axis, 1) > 1]

    def specs(self, rows: Sequence[Mapping[str, Any]], batch: int) -> list[list[Any] | None]:
        """Of each flat argument of a program. Raises `MeshError` where the batch cannot be shared."""
        shared = self.batch_axes()
        count = math.prod(self.axes[axis] for axis in shared)
        if batch % count:
            raise MeshError(f"a batch of {batch} cannot be shared by {count} devices: give --batch with a multiple of {count}")
        argument_specs: list[list[Any] | None] = []
        for row in rows:
            if row["role"] == "input":
                argument_specs.append([shared] if shared and row["shape"] and row["shape"][0] == batch else None)
            else:
                argument_specs.append(list(self.spec_of(row)) or None)
        return argument_specs


def propose(rows: Sequence[Mapping[str, Any]], layers: Mapping[str, Sequence[str]], axes: Mapping[str, int]) -> Proposal:
    """A sharding for each parameter. `rows` are the arguments of a program, `layers` the class names of the module at each path."""
    parameters = [(str(row["path"]), tuple(row["shape"])) for row in rows if row["role"] == "parameter"]
    roles = _roles(parameters, layers)
    placed = tuple(_place(path, shape, layers, roles, axes) for path, shape in parameters)
    activations = tuple(
        f"{holder}: {'its features over model' if role == 'column' else 'whole features, after a reduction over model'}"
        for holder, role in roles.items()
        if axes.get("model", 1) > 1
    )
    whole = [parameter.path for parameter in placed if len(parameter.shape) > 1 and not any(parameter.spec)]
    notes = (f"{len(whole)} parameters of several axes stay whole, such as {whole[0]}",) if whole else ()
    return Proposal(axes, placed, activations, notes, {parameter.path: parameter for parameter in placed})


def _split(path: str) -> tuple[str, str]:
    holder, _, name = path.rpartition("/")
    return holder, name


def _layer_kind(names: Sequence[str]) -> str:
    """The kind of a layer (`Linear`, `Conv`, `Embed`), by the names of its classes; else the name of its own class."""
    for name in names:
        for kind in ("Linear", "Conv", "Embed"):
            if name.startswith(kind) and not name.startswith("ConvTranspose"):
                return kind
    return names[0] if names else ""


def _roles(parameters: Sequence[tuple[str, tuple[int, ...]]], layers: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """`column` or `row` by path of each linear layer: by its shape, or where that is square, `row` for the last of several in one module."""
    linear = {
        _split(path)[0]: shape
        for path, shape in parameters
        if path.endswith("kernel") and _layer_kind(layers.get(_split(path)[0], ())) == "Linear"
    }
    ordered = sorted(linear, key=list(layers).index)
    roles = {}
    for holder in ordered:
        inner, outer = linear[holder][-2:]
        siblings = [other for other in ordered if _split(other)[0] == _split(holder)[0]]
        last = len(siblings) > 1 and siblings[-1] == holder
        roles[holder] = "row" if outer < inner or (outer == inner and last) else "column"
    return roles


def _place(
    path: str, shape: tuple[int, ...], layers: Mapping[str, Sequence[str]], roles: Mapping[str, str], axes: Mapping[str, int]
) -> PlacedParameter:
    holder, name = _split(path)
    names = list(layers.get(holder, ()))
    kind = _layer_kind(names)
    spec: list[Any] = [None] * len(shape)
    reason = "whole on every device"
    if (count := axes.get("model", 1)) > 1:
        candidates, split_reason = _by_model(kind, name, shape, roles.get(holder, ""))
        fitting = next((axis for axis in candidates if shape[axis] % count == 0), None)
        if fitting is not None:
            spec[fitting], reason = "model", split_reason
    if (count := axes.get("fsdp", 1)) > 1 and len(shape) > 1:
        free = [axis for axis, mesh_axis in enumerate(spec) if mesh_axis is None and shape[axis] % count == 0 and shape[axis] > 1]
        if free:
            spec[max(free, key=lambda axis: shape[axis])] = "fsdp"
            reason = "largest free axis over fsdp" if reason.startswith("whole") else f"{reason}; largest free axis over fsdp"
    return PlacedParameter(path, shape, names[0] if names else "", tuple(spec) if any(spec) else (), reason)


def _by_model(kind: str, name: str, shape: tuple[int, ...], role: str) -> tuple[tuple[int, ...], str]:
    """The axes that may be split over `model`, the best first, and why."""
    last = len(shape) - 1
    if kind == "Linear" and name == "kernel":
        return ((last,), "column-parallel: outputs over model") if role == "column" else ((last - 1,), "row-parallel: inputs over model")
    if kind == "Linear" and name == "bias" and role == "column":
        return (0,), "bias of a column-parallel layer"
    if kind == "Embed" and len(shape) == 2:
        return (0, 1), "rows of the table over model, else its features"
    if kind == "Conv" and name in ("kernel", "bias"):
        return (last,), "output channels over model"
    return (), ""
