"""The code that only a TPU runs (Pallas kernels, branches by platform) is live, and computes the results of the CPU's code."""

from __future__ import annotations

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, pattern_problem, rms
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results

NAME = "kernels"


def judge(results: Results) -> Verdict | None:
    """Compare outputs and gradients in float32, with kernels interpreted, with those on a CPU. Applies where the two programs differ."""
    facts = (results.native.get("compile") or {}).get("kernels")
    if facts is None:
        return None
    if problem := facts.get("error") or _problem(facts):
        return Verdict("portable", NAME, "fail", detail=problem)
    arrays = results.of("native").arrays.get("kernels", {})
    plain = {key.removeprefix("plain/"): value for key, value in arrays.items() if key.startswith("plain/")}
    scale = tolerances.GLOBAL_SCALE_NATIVE * max((rms(value) for key, value in plain.items() if key.startswith("gradient")), default=0.0)
    branch = tolerances.TPU_BRANCH_FP32 if facts["kernels"] else tolerances.PLAIN_BRANCH_FP32
    rows = []
    for key, expected in plain.items():
        actual = arrays[f"tpu/{key}"]
        problem = pattern_problem(expected, actual)
        size = max(rms(expected), scale if key.startswith("gradient") else 0.0) or 1.0
        # Gradients sum over the batch in blocks, which rounds more than a forward pass.
        floor = tolerances.FLOOR_GRADIENT_FP32 if key.startswith("gradient") else branch
        rows.append(
            Difference(key, float("inf") if problem else rms(actual.astype("float64") - expected.astype("float64")) / size, floor, problem)
        )
    worst = max(rows, key=lambda row: row.badness)
    detail = f"{facts['live']} kernels live; on a TPU {worst.label}: {worst.problem or f'error {worst.measured:.1e}'}"
    return Verdict("portable", NAME, "fail" if worst.failed else "pass", worst.measured, worst.limit, detail)


def _problem(facts: dict[str, int]) -> str:
    if facts["live"] < facts["kernels"]:
        return f"{facts['kernels'] - facts['live']} of {facts['kernels']} kernels are dead code: no result depends on them"
    return "" if facts["followed"] else "a branch by platform cannot be followed: call jax.lax.platform_dependent by that name"


CHECK = Check("portable", NAME, judge)
