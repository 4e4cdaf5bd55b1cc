"""What varies over a recording, how many programs that makes, and whether padding to buckets gives fewer without changing a result.

A proposal is only made where it was tried: the padded call, cut to the size that was asked for, gives what the unpadded one gives, in double
precision and whatever the padding holds. Masks (boolean arguments) are padded with one value, all else with noise.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from migrate_agent.tools.harness.common import tensor_files, tolerances
from migrate_agent.tools.harness.common.compare_arrays import compare, quiet
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.portable import shapes
from migrate_agent.tools.portable.ahead import PLACE, Ahead, Ran, Variant
from migrate_agent.tools.portable.mesh_check import EXACT
from migrate_agent.tools.types import Job

Axis = Literal["batch", "length"]
PADDINGS = 2
"""Noises that the padding is filled with."""


@dataclass(frozen=True)
class Varies:
    """One argument's axis over the calls of a recording; `argument` counts arrays from 0."""

    argument: int
    axis: int
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Padding:
    """A padding that was tried. `exact` where no result changed; `measured` is the worst relative error, `why` says more where it is not."""

    axis: Axis
    sizes: tuple[int, ...]
    buckets: tuple[int, ...]
    mask: bool | None
    exact: bool
    measured: float
    limit: float
    why: str = ""


def varying(calls: Sequence[Sequence[shapes.Leaf]]) -> tuple[int, tuple[Varies, ...]]:
    """How many programs these calls need (one for each set of shapes and dtypes), and which axes vary."""
    programs = len({tuple(call) for call in calls})
    found = []
    for argument in range(min((len(call) for call in calls), default=0)):
        seen = [call[argument][0] for call in calls]
        for axis in range(len(seen[0]) if len({len(shape) for shape in seen}) == 1 else 0):
            sizes = tuple(sorted({shape[axis] for shape in seen}))
            if len(sizes) > 1:
                found.append(Varies(argument, axis, sizes))
    return programs, tuple(found)


def bucket(size: int) -> int:
    """The power of two that holds this size; 8 at least, which is a tile's sublanes."""
    return max(8, 1 << (size - 1).bit_length())


def tried(ahead: Ahead, axis: Axis, sizes: Sequence[int]) -> Padding:
    """Pad the example's call to its bucket, and compare. The first padding of masks that is exact counts. Raises `PortableError`."""
    buckets = tuple(sorted({bucket(size) for size in sizes}))
    own = shapes.batch_of(ahead.leaves) if axis == "batch" else shapes.length_of(ahead.leaves)
    wide = bucket(own + 1)
    small = Variant(dtype="f64")
    large = Variant(wide if axis == "batch" else 0, wide if axis == "length" else 0, "f64")
    folder = ahead.folder / "padded"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with Ran(ahead.sandbox, ahead.export_job([small, large], ["forward"], EXACT)) as ran:
        for variant in (small, large):
            facts: Mapping[str, Any] = ran.result["variants"][variant.name]
            refused = facts.get("refused") or facts["forward"].get("refused")
            if refused:
                why = f"it cannot be called with a {axis} of {wide}: {refused['text'].splitlines()[0][:200]}"
                return Padding(axis, tuple(sizes), buckets, None, False, float("inf"), tolerances.FLOOR_FP64, why)
        for path in ran.output.iterdir():
            shutil.copyfile(path, folder / path.name)
    held = tensor_files.load(folder / f"{small.name}-values.safetensors")
    stored = tensor_files.load(ahead.folder / "inputs0.safetensors")
    inputs = [stored[str(index)] for index in range(len(ahead.leaves))]
    masks: tuple[bool | None, ...] = (False, True) if any(value.dtype.kind == "b" for value in inputs) else (None,)
    found = [_compared(ahead, (small, large), held, inputs, mask, (axis, own, wide)) for mask in masks]
    mask, error, why = min(found, key=lambda row: row[1])
    return Padding(axis, tuple(sizes), buckets, mask, error <= tolerances.FLOOR_FP64, error, tolerances.FLOOR_FP64, why)


def _compared(
    ahead: Ahead,
    variants: Sequence[Variant],
    held: Mapping[str, Array],
    inputs: Sequence[Array],
    mask: bool | None,
    what: tuple[Axis, int, int],
) -> tuple[bool | None, float, str]:
    """The mask, the worst relative error over the paddings, and where."""
    folder, (small, large), (axis, own, wide) = ahead.folder / "padded", variants, what
    runs = [{"name": "plain", "file": f"{small.name}-forward.bin", "values": "plain.safetensors"}]
    _save(folder / "plain.safetensors", held, inputs)
    for seed in range(PADDINGS):
        grown = [_padded(value, shape, mask, seed) for value, (shape, _) in zip(inputs, ahead.resized(large), strict=True)]
        _save(folder / f"padded{seed}.safetensors", held, grown)
        runs.append({"name": f"padded{seed}", "file": f"{large.name}-forward.bin", "values": f"padded{seed}.safetensors"})
    job = Job("candidate", f"{PLACE}.pad_side:run", ahead.folder / "empty", {"runs": runs}, {"exported": folder}, ahead.limits)
    with Ran(ahead.sandbox, job) as ran:
        plain, *others = (tensor_files.load(ran.output / f"{row['name']}.safetensors") for row in runs)
    worst, why = 0.0, ""
    for other in others:
        for name, expected in plain.items():
            cut = other[name][tuple(slice(size) for size in expected.shape)] if other[name].ndim == expected.ndim else other[name]
            found = compare(f"output {name}", expected, cut, quiet, tolerances.FLOOR_FP64)
            error = float("inf") if found.problem else found.measured
            if error > worst:
                worst, why = (
                    error,
                    f"{found.label}: {found.problem or f'differs by {error:.1e}'} where a {axis} of {own} is padded to {wide}",
                )
    return mask, worst, why if worst > tolerances.FLOOR_FP64 else ""


def _save(path: Any, held: Mapping[str, Array], inputs: Sequence[Array]) -> None:
    tensor_files.save(path, {**held, **{str(len(held) + index): value for index, value in enumerate(inputs)}})


def _padded(value: Array, shape: Sequence[int], mask: bool | None, seed: int) -> Array:
    """The array with more at its ends: booleans with `mask`, integers with some that it holds, floats with noise."""
    generator = np.random.default_rng([seed, value.size])
    grown: Array = np.empty(tuple(shape), value.dtype)
    if value.dtype.kind == "b":
        grown[...] = bool(mask)
    elif value.dtype.kind == "f":
        grown[...] = 10 * generator.standard_normal(grown.shape)
    else:
        grown[...] = generator.choice(value.reshape(-1), grown.shape)
    grown[tuple(slice(size) for size in value.shape)] = value
    return grown
