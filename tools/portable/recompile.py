"""Finds the axes that vary over a recording, the number of programs that they cause, and whether padding to buckets reduces it.

A padding is only proposed after a trial: the padded call, cut to the unpadded size, must give the
results of the unpadded one in float64, for any content of the padding. Masks (boolean arguments) are
padded with one value, all other arguments with noise.
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
from migrate_agent.tools.portable.ahead import PACKAGE, Ahead, JobRun, Variant
from migrate_agent.tools.portable.mesh_check import EXACT
from migrate_agent.tools.types import Job

Axis = Literal["batch", "length"]
PADDINGS = 2
"""Number of random fillings of the padding: a result that depends on it differs under one of them."""


@dataclass(frozen=True)
class VaryingAxis:
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


def varying_axes(calls: Sequence[Sequence[shapes.Leaf]]) -> tuple[int, tuple[VaryingAxis, ...]]:
    """The number of programs that these calls need (one for each set of shapes and dtypes), and the axes that vary."""
    programs = len({tuple(call) for call in calls})
    axes = []
    for argument in range(min((len(call) for call in calls), default=0)):
        argument_shapes = [call[argument][0] for call in calls]
        for axis in range(len(argument_shapes[0]) if len({len(shape) for shape in argument_shapes}) == 1 else 0):
            sizes = tuple(sorted({shape[axis] for shape in argument_shapes}))
            if len(sizes) > 1:
                axes.append(VaryingAxis(argument, axis, sizes))
    return programs, tuple(axes)


def bucket(size: int) -> int:
    """The power of two that holds this size; 8 at least, which is a tile's sublanes."""
    return max(8, 1 << (size - 1).bit_length())


def try_padding(ahead: Ahead, axis: Axis, sizes: Sequence[int]) -> Padding:
    """Pad the example's call to its bucket, and compare. The first padding of masks that is exact counts. Raises `PortableError`."""
    buckets = tuple(sorted({bucket(size) for size in sizes}))
    own = shapes.batch_of(ahead.leaves) if axis == "batch" else shapes.length_of(ahead.leaves)
    # One more than the example, so that there is padding even where its size is a power of two.
    wide = bucket(own + 1)
    small = Variant(dtype="f64")
    large = Variant(wide if axis == "batch" else 0, wide if axis == "length" else 0, "f64")
    folder = ahead.folder / "padded"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with JobRun(ahead.sandbox, ahead.export_job([small, large], ["forward"], EXACT)) as ran:
        for variant in (small, large):
            facts: Mapping[str, Any] = ran.result["variants"][variant.name]
            refused = facts.get("refused") or facts["forward"].get("refused")
            if refused:
                reason = f"it cannot be called with a {axis} of {wide}: {refused['text'].splitlines()[0][:200]}"
                return Padding(axis, tuple(sizes), buckets, None, False, float("inf"), tolerances.FLOOR_FP64, reason)
        for path in ran.output.iterdir():
            shutil.copyfile(path, folder / path.name)
    parameters = tensor_files.load(folder / f"{small.name}-values.safetensors")
    stored = tensor_files.load(ahead.folder / "inputs0.safetensors")
    inputs = [stored[str(index)] for index in range(len(ahead.leaves))]
    masks: tuple[bool | None, ...] = (False, True) if any(value.dtype.kind == "b" for value in inputs) else (None,)
    results = [_compare_padded(ahead, (small, large), parameters, inputs, mask, (axis, own, wide)) for mask in masks]
    mask, error, reason = min(results, key=lambda row: row[1])
    return Padding(axis, tuple(sizes), buckets, mask, error <= tolerances.FLOOR_FP64, error, tolerances.FLOOR_FP64, reason)


def _compare_padded(
    ahead: Ahead,
    variants: Sequence[Variant],
    parameters: Mapping[str, Array],
    inputs: Sequence[Array],
    mask: bool | None,
    sizes: tuple[Axis, int, int],
) -> tuple[bool | None, float, str]:
    """The mask, the worst relative error over the paddings, and its description."""
    folder, (small, large), (axis, own, wide) = ahead.folder / "padded", variants, sizes
    runs = [{"name": "plain", "file": f"{small.name}-forward.bin", "values": "plain.safetensors"}]
    _save(folder / "plain.safetensors", parameters, inputs)
    for seed in range(PADDINGS):
        grown = [_pad(value, shape, mask, seed) for value, (shape, _) in zip(inputs, ahead.resized(large), strict=True)]
        _save(folder / f"padded{seed}.safetensors", parameters, grown)
        runs.append({"name": f"padded{seed}", "file": f"{large.name}-forward.bin", "values": f"padded{seed}.safetensors"})
    job = Job("candidate", f"{PACKAGE}.pad_side:run", ahead.folder / "empty", {"runs": runs}, {"exported": folder}, ahead.limits)
    with JobRun(ahead.sandbox, job) as ran:
        plain, *others = (tensor_files.load(ran.output / f"{row['name']}.safetensors") for row in runs)
    worst, reason = 0.0, ""
    for other in others:
        for name, expected in plain.items():
            cut = other[name][tuple(slice(size) for size in expected.shape)] if other[name].ndim == expected.ndim else other[name]
            difference = compare(f"output {name}", expected, cut, quiet, tolerances.FLOOR_FP64)
            error = float("inf") if difference.problem else difference.measured
            if error > worst:
                worst, reason = (
                    error,
                    f"{difference.label}: {difference.problem or f'differs by {error:.1e}'} where a {axis} of {own} is padded to {wide}",
                )
    return mask, worst, reason if worst > tolerances.FLOOR_FP64 else ""


def _save(path: Any, parameters: Mapping[str, Array], inputs: Sequence[Array]) -> None:
    tensor_files.save(path, {**parameters, **{str(len(parameters) + index): value for index, value in enumerate(inputs)}})


def _pad(value: Array, shape: Sequence[int], mask: bool | None, seed: int) -> Array:
    """The array grown to `shape`: booleans by `mask`, integers by values that it contains, floats by noise of scale 10."""
    generator = np.random.default_rng([seed, value.size])
    grown: Array = np.empty(tuple(shape), value.dtype)
    if value.dtype.kind == "b":
        grown[...] = bool(mask)
    elif value.dtype.kind == "f":
        grown[...] = 10 * generator.standard_normal(grown.shape)
    else:
        # Indices must stay valid, so only values of the array itself are sure to be allowed.
        grown[...] = generator.choice(value.reshape(-1), grown.shape)
    grown[tuple(slice(size) for size in value.shape)] = value
    return grown
