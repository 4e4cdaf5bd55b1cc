"""Whether a training step with kernels computes what it does without: in float32, beside the plain step in float64."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import tensor_files, tolerances
from migrate_agent.tools.harness.common.compare_arrays import pattern_problem, rms
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.portable import shapes
from migrate_agent.tools.portable.ahead import PLACE, Ahead, PortableError, Ran, Variant
from migrate_agent.tools.portable.mesh_check import EXACT, PROGRAM, StepCheck, example_inputs
from migrate_agent.tools.types import Job

VALUES = MappingProxyType({"values": True, "platform": "cpu"})
INTERPRETED = MappingProxyType({"interpreted": True, "platform": "cpu"})


def check(plain: Ahead, fused: Ahead) -> StepCheck:
    """Run one training step of the example three times: plain in float64 and in float32, and with the kernels interpreted. Raises `PortableError`."""
    folder = plain.folder / "kernels"
    folder.mkdir(exist_ok=True)
    batch = shapes.batch_of(plain.leaves)
    held, _ = _exported(plain, Variant(batch), VALUES, folder, "plain")
    _exported(plain, Variant(batch, dtype="f64"), {**EXACT, "values": False}, folder, "exact")
    _, roles = _exported(fused, Variant(batch), INTERPRETED, folder, "fused")
    inputs = example_inputs(plain, batch)
    tensor_files.save(folder / "values.safetensors", {**held, **{str(len(held) + index): value for index, value in enumerate(inputs)}})
    given = {"exported": folder, "values": folder / "values.safetensors"}
    job = Job(
        "candidate", f"{PLACE}.run_side:run", plain.folder / "empty", {"files": [f"{name}.bin" for name in NAMES]}, given, plain.limits
    )
    with Ran(plain.sandbox, job) as ran:
        exact, own, found = (tensor_files.load(ran.output / f"{name}-results.safetensors") for name in NAMES)
    return judged(exact, own, found, roles)


NAMES = ("exact", "plain", "fused")


def _exported(ahead: Ahead, variant: Variant, how: Mapping[str, Any], folder: Path, name: str) -> tuple[dict[str, Array], list[str]]:
    """Export the step as `<name>.bin`; gives the constructed module's arrays, where `how` asks for them, and the results' roles."""
    with Ran(ahead.sandbox, ahead.export_job([variant], [PROGRAM], how)) as ran:
        facts: Mapping[str, Any] = ran.result["variants"][variant.name]
        refused = facts.get("refused") or facts[PROGRAM].get("refused")
        if refused:
            raise PortableError(f"its step cannot be exported: {refused['text'].splitlines()[0]}")
        (folder / f"{name}.bin").write_bytes((ran.output / f"{variant.name}-{PROGRAM}.bin").read_bytes())
        held = tensor_files.load(ran.output / f"{variant.name}-values.safetensors") if how.get("values") else {}
        return dict(held), list(facts[PROGRAM]["results"])


def judged(exact: Mapping[str, Array], own: Mapping[str, Array], found: Mapping[str, Array], roles: list[str]) -> StepCheck:
    """By the verifier's rule for float32: an error of at most twice the plain step's own, and a floor."""
    scale = tolerances.GLOBAL_SCALE_NATIVE * max((rms(exact[str(i)]) for i, role in enumerate(roles) if role == "gradient"), default=0.0)
    rows = []
    for index, role in enumerate(roles):
        truth, mine, other = (np.asarray(results[str(index)]) for results in (exact, own, found))
        problem = pattern_problem(truth, other)
        if problem or truth.dtype.kind != "f":
            wrong = float(not problem and (mine != other).any())
            rows.append((float("inf") if problem or wrong else 0.0, f"{role} {index}", wrong, 0.0, problem))
            continue
        size = max(rms(truth), scale if role == "gradient" else 0.0) or 1.0
        floor = tolerances.FLOOR_GRADIENT_FP32 if role == "gradient" else tolerances.FLOOR_FP32
        limit = tolerances.FP32_FACTOR * rms(mine - truth) / size + floor
        measured = rms(other - truth) / size
        rows.append((measured / limit, f"{role} {index}", measured, limit, ""))
    badness, worst, measured, limit, problem = max(rows)
    return StepCheck(len(rows), worst, measured, limit, badness <= 1, problem)
