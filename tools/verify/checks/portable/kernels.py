"""What the candidate runs on a TPU alone (Pallas kernels, branches by platform) is live, and computes what it computes elsewhere."""

from __future__ import annotations

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, pattern_problem, rms
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results

NAME = "kernels"


def judge(results: Results) -> Verdict | None:
    """Float32, kernels interpreted, outputs and gradients beside those of the same program on a CPU. Applies where the two are not the same."""
    found = (results.native.get("compile") or {}).get("kernels")
    if found is None:
        return None
    if problem := found.get("error") or _problem(found):
        return Verdict("portable", NAME, "fail", detail=problem)
    held = results.of("native").arrays.get("kernels", {})
    plain = {key.removeprefix("plain/"): value for key, value in held.items() if key.startswith("plain/")}
    scale = tolerances.GLOBAL_SCALE_NATIVE * max((rms(value) for key, value in plain.items() if key.startswith("gradient")), default=0.0)
    rows = []
    for key, expected in plain.items():
        got = held[f"tpu/{key}"]
        problem = pattern_problem(expected, got)
        size = max(rms(expected), scale if key.startswith("gradient") else 0.0) or 1.0
        floor = tolerances.FLOOR_GRADIENT_FP32 if key.startswith("gradient") else tolerances.TPU_BRANCH_FP32
        rows.append(
            Difference(key, float("inf") if problem else rms(got.astype("float64") - expected.astype("float64")) / size, floor, problem)
        )
    worst = max(rows, key=lambda row: row.badness)
    told = f"{found['live']} kernels live; on a TPU {worst.label}: {worst.problem or f'error {worst.measured:.1e}'}"
    return Verdict("portable", NAME, "fail" if worst.failed else "pass", worst.measured, worst.limit, told)


def _problem(found: dict[str, int]) -> str:
    if found["live"] < found["kernels"]:
        return f"{found['kernels'] - found['live']} of {found['kernels']} kernels are dead code: no result depends on them"
    return "" if found["followed"] else "a branch by platform cannot be followed: call jax.lax.platform_dependent by that name"


CHECK = Check("portable", NAME, judge)
