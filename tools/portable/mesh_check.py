"""Checks that a sharded training step gives the results of one device: on simulated devices, in float64, to the verifier's limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from migrate_agent.tools.harness.common import tensor_files, tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, compare, quiet, rms
from migrate_agent.tools.harness.common.input_sampling import Array, Leaf, resized
from migrate_agent.tools.portable import shapes
from migrate_agent.tools.portable.ahead import PACKAGE, Ahead, JobRun, PortableError, Variant
from migrate_agent.tools.portable.sharding import Proposal
from migrate_agent.tools.types import Job

PROGRAM = "gradient"
EXACT = MappingProxyType({"exact": True, "values": True, "platform": "cpu"})


@dataclass(frozen=True)
class StepCheck:
    """The worst relative error of all results (loss, outputs, gradients, parameters after a step of SGD, other state), and its limit."""

    compared: int
    worst: str
    measured: float
    limit: float
    equal: bool
    problem: str


@dataclass(frozen=True)
class MeshCheck(StepCheck):
    """The check of a sharded step, with the number of devices and of arrays that were split over them."""

    devices: int
    split: int


def check(ahead: Ahead, proposal: Proposal) -> MeshCheck:
    """Run one training step of the example on one simulated device and on the mesh. Raises `PortableError`."""
    share = math.prod(proposal.axes[axis] for axis in proposal.batch_axes())
    size = shapes.batch_of(ahead.leaves)
    # The batch is rounded up, because a mesh can only share a multiple of its devices.
    variant = Variant(batch=-(-max(size, 1) // share) * share, dtype="f64")
    folder = ahead.folder / "exact"
    folder.mkdir(exist_ok=True)
    with JobRun(ahead.sandbox, ahead.export_job([variant], [PROGRAM], EXACT)) as ran:
        facts: Mapping[str, Any] = ran.result["variants"][variant.name]
        refused = facts.get("refused") or facts[PROGRAM].get("refused")
        if refused:
            raise PortableError(f"its step cannot be exported in float64: {refused['text'].splitlines()[0]}")
        file = f"{variant.name}-{PROGRAM}.bin"
        (folder / file).write_bytes((ran.output / file).read_bytes())
        values = tensor_files.load(ran.output / f"{variant.name}-values.safetensors")
    inputs = example_inputs(ahead, variant.batch)
    tensor_files.save(folder / "values.safetensors", {**values, **{str(len(values) + index): value for index, value in enumerate(inputs)}})
    rows = facts[PROGRAM]["arguments"]
    arguments = {"axes": dict(proposal.axes), "file": file, "specs": proposal.specs(rows, variant.batch)}
    job_inputs = {"exported": folder, "values": folder / "values.safetensors"}
    with JobRun(
        ahead.sandbox, Job("candidate", f"{PACKAGE}.mesh_side:run", ahead.folder / "empty", arguments, job_inputs, ahead.limits)
    ) as ran:
        single, sharded = (tensor_files.load(ran.output / f"{name}.safetensors") for name in ("single", "sharded"))
        devices, split = int(ran.result["devices"]), int(ran.result["split"])
    return _judge_steps(single, sharded, facts[PROGRAM]["results"], devices, split)


def example_inputs(ahead: Ahead, batch: int) -> list[Array]:
    """The example's arrays resized to `batch` rows; as they are where they cannot be resized."""
    stored = tensor_files.load(ahead.folder / "inputs0.safetensors")
    values = [stored[str(index)] for index in range(len(ahead.leaves))]
    old = shapes.batch_of(ahead.leaves)
    leaves = [Leaf(value, dtype) for value, (_, dtype) in zip(values, ahead.leaves, strict=True)]
    return (resized(leaves, {old: batch}, 0, [0]) if batch != old else None) or values


def _judge_steps(single: Mapping[str, Array], sharded: Mapping[str, Array], roles: list[str], devices: int, split: int) -> MeshCheck:
    scale = tolerances.GLOBAL_SCALE * max((rms(single[str(index)]) for index, role in enumerate(roles) if role == "gradient"), default=0.0)
    differences: list[Difference] = []
    for index, role in enumerate(roles):
        floor = tolerances.FLOOR_GRADIENT_FP64 if role == "gradient" else tolerances.FLOOR_FP64
        label = f"{role} {index}"
        differences.append(compare(label, single[str(index)], sharded[str(index)], quiet, floor, scale if role == "gradient" else 0.0))
    worst = max(differences, key=lambda difference: difference.badness)
    return MeshCheck(len(differences), worst.label, worst.measured, worst.limit, not worst.failed, worst.problem, devices, split)
