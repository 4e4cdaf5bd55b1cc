"""Checks that a training step with kernels computes the plain step's results: in float32, against the plain step in float64."""

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
from migrate_agent.tools.portable.ahead import PACKAGE, Ahead, JobRun, PortableError, Variant
from migrate_agent.tools.portable.mesh_check import EXACT, PROGRAM, StepCheck, example_inputs
from migrate_agent.tools.types import Job

VALUES = MappingProxyType({"values": True, "platform": "cpu"})
INTERPRETED = MappingProxyType({"interpreted": True, "platform": "cpu"})


def check(plain: Ahead, fused: Ahead) -> StepCheck:
    """Run one training step of the example three times: plain in float64 and in float32, and with the kernels interpreted. Raises `PortableError`."""
    folder = plain.folder / "kernels"
    folder.mkdir(exist_ok=True)
    batch = shapes.batch_of(plain.leaves)
    values, _ = _export_step(plain, Variant(batch), VALUES, folder, "plain")
    _export_step(plain, Variant(batch, dtype="f64"), {**EXACT, "values": False}, folder, "exact")
    _, roles = _export_step(fused, Variant(batch), INTERPRETED, folder, "fused")
    inputs = example_inputs(plain, batch)
    tensor_files.save(folder / "values.safetensors", {**values, **{str(len(values) + index): value for index, value in enumerate(inputs)}})
    job_inputs = {"exported": folder, "values": folder / "values.safetensors"}
    job = Job(
        "candidate",
        f"{PACKAGE}.run_side:run",
        plain.folder / "empty",
        {"files": [f"{name}.bin" for name in NAMES]},
        job_inputs,
        plain.limits,
    )
    with JobRun(plain.sandbox, job) as ran:
        exact, own, fused_results = (tensor_files.load(ran.output / f"{name}-results.safetensors") for name in NAMES)
    return judge_steps(exact, own, fused_results, roles)


NAMES = ("exact", "plain", "fused")


def _export_step(ahead: Ahead, variant: Variant, options: Mapping[str, Any], folder: Path, name: str) -> tuple[dict[str, Array], list[str]]:
    """Export the step as `<name>.bin`. Returns the constructed module's arrays, where `options` asks for them, and the results' roles."""
    with JobRun(ahead.sandbox, ahead.export_job([variant], [PROGRAM], options)) as ran:
        facts: Mapping[str, Any] = ran.result["variants"][variant.name]
        refused = facts.get("refused") or facts[PROGRAM].get("refused")
        if refused:
            raise PortableError(f"its step cannot be exported: {refused['text'].splitlines()[0]}")
        (folder / f"{name}.bin").write_bytes((ran.output / f"{variant.name}-{PROGRAM}.bin").read_bytes())
        values = tensor_files.load(ran.output / f"{variant.name}-values.safetensors") if options.get("values") else {}
        return dict(values), list(facts[PROGRAM]["results"])


def judge_steps(exact: Mapping[str, Array], own: Mapping[str, Array], fused: Mapping[str, Array], roles: list[str]) -> StepCheck:
    """Judge by the verifier's rule for float32: an error of at most twice the plain step's own, plus a floor."""
    scale = tolerances.GLOBAL_SCALE_NATIVE * max((rms(exact[str(i)]) for i, role in enumerate(roles) if role == "gradient"), default=0.0)
    rows = []
    for index, role in enumerate(roles):
        truth, mine, other = (np.asarray(results[str(index)]) for results in (exact, own, fused))
        problem = pattern_problem(truth, other)
        # Integers and booleans have no rounding error: any difference counts.
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
