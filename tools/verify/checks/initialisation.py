"""Fresh parameters and buffers have the original's distribution: two-sample Kolmogorov-Smirnov tests, structure, and equality of what is constant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify import limits
from migrate_agent.tools.verify.check import NEW_PROCESS, Check
from migrate_agent.tools.verify.initial_structure import copies, distribution_problem, structure_problem
from migrate_agent.tools.verify.results import NATIVE, Results
from migrate_agent.tools.verify.sampling import Array


def judge(results: Results) -> Verdict | None:
    """Fail with the parameters that start otherwise; the measure is the smallest p-value. Applies where there is a state."""
    theirs = results.expected.initial
    if not theirs:
        return None
    job = results.native.get("initial", {})
    if results.port is not None and "skipped" in job:
        return None
    if "error" in job:
        return Verdict("numeric", "initialisation", "fail", detail=f"fresh construction raised {job['error']}")
    ours = results.outputs["native"].get("initial", {})
    alpha = limits.INIT_ALPHA / len(theirs)
    dtypes = results.described()["state_dtypes"]
    other = [
        f"{name}: dtype {job['dtypes'].get(name)} instead of {dtype}"
        for name, dtype in dtypes.items()
        if name not in results.omitted and not _same(job["dtypes"].get(name), dtype)
    ]
    if other:
        return Verdict("numeric", "initialisation", "fail", detail="; ".join(other[:3]))
    compared = {name: value for name, value in theirs.items() if value.size and name not in results.omitted}
    shapes = results.described()["state"]
    judged = {name: _judge(value, ours.get(name), shapes[name], alpha) for name, value in compared.items()}
    wrong = [f"{name}: {problem}" for name, (problem, _) in judged.items() if problem]
    if not wrong:
        same = copies({name: ours[name] for name in compared}) - copies(compared)
        wrong = [f"{' and '.join(names)} start with the same numbers, unlike torch's" for names in sorted(same)]
    smallest = min((p for _, p in judged.values()), default=1.0)
    return Verdict("numeric", "initialisation", "fail" if wrong else "pass", smallest, alpha, "; ".join(wrong[:3]))


def _same(ours: str | None, theirs: str) -> bool:
    """Whether a dtype is torch's, jax's narrower defaults granted."""
    return ours is not None and NATIVE.get(ours, ours) == NATIVE.get(theirs, theirs)


def _judge(theirs: Array, ours: Array | None, shape: Sequence[int], alpha: float) -> tuple[str, float]:
    """What is wrong with one parameter's values (constructions × elements), and the p-value."""
    if ours is None or ours.shape != theirs.shape:
        return "not there", 0.0
    constant = (theirs == theirs[0]).all(axis=0) | np.isnan(theirs).all(axis=0)
    problem = _constant_problem(theirs[0][constant], ours[:, constant])
    if problem or constant.all():
        return problem, 0.0 if problem else 1.0
    theirs, ours = (np.abs(value[:, ~constant]) if value.dtype.kind == "c" else value[:, ~constant] for value in (theirs, ours))
    if (ours == ours[0]).all():
        return "the same values in each construction, unlike torch's", 0.0
    problem, p = distribution_problem(theirs, ours, alpha / 2)
    return (problem or (structure_problem(theirs, ours, shape, alpha / 2) if not constant.any() else "")), p


def _constant_problem(theirs: Array, ours: Array) -> str:
    if not theirs.size:
        return ""
    scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0) or 1.0
    if not np.allclose(ours, theirs[None], rtol=limits.INIT_CONSTANT, atol=limits.INIT_CONSTANT * scale, equal_nan=True):
        return f"constant values differ (such as {ours.flat[0]:.4g} for {theirs.flat[0]:.4g})"
    return ""


CHECK = Check("numeric", "initialisation", judge, cost=NEW_PROCESS)
