"""Fresh parameters and buffers have the original's distribution: two-sample Kolmogorov-Smirnov tests, structure, and equality of what is constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.argument_changes import words
from migrate_agent.tools.harness.common.compare_arrays import rms
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.compare.initial_values import Sample, copies, distribution_problem, structure_problem
from migrate_agent.tools.verify.evidence.candidate import NATIVE, Results

JUDGES = 2
"""Number of threads that judge parameters."""


def judge(results: Results) -> Verdict | None:
    """Fail with the parameters that start with another distribution; the measure is the smallest p-value. Applies where there is a state.

    Covers each example with a construction of its own, and other configurations that the candidate
    takes.
    """
    jobs = results.native.get("initial", {})
    theirs = {number: fresh for number, fresh in results.expected.initial.items() if fresh and not _refused(results, number, jobs)}
    if not theirs or (results.port is not None and any("skipped" in job for job in jobs.values())):
        return None
    # Bonferroni: the probability of refusing a right unit holds for all parameters together.
    alpha = tolerances.INIT_ALPHA / sum(map(len, theirs.values()))
    smallest = 1.0
    for number, fresh in theirs.items():
        wrong, least = _problems(results, number, fresh, jobs.get(str(number), {}), alpha)
        smallest = min(smallest, least)
        if wrong:
            index = results.expected.examples[number]["index"]
            changes = words(results.expected.examples[number]["changes"])
            method = results.examples[index].method
            prefix = f"{changes}: " if changes else f"after {method}: " if method else f"example {index + 1}: " if number else ""
            return Verdict("numeric", "initialisation", "fail", smallest, alpha, prefix + "; ".join(wrong[:3]))
    return Verdict("numeric", "initialisation", "pass", smallest, alpha)


def _refused(results: Results, number: int, jobs: Mapping[str, Any]) -> bool:
    """Whether the candidate does not take the other arguments, or has no such method and need not have it."""
    described, job = results.expected.examples[number], jobs.get(str(number), {})
    method = results.examples[described["index"]].method
    if method and "lacking" in job:
        return results.port is not None
    return "error" in job and bool(described["changes"] or (method and results.may_be_stub_of(described["index"])))


def _problems(results: Results, number: int, theirs: Mapping[str, Array], job: Mapping[str, Any], alpha: float) -> tuple[list[str], float]:
    """Messages on an example's fresh values, and the smallest p-value."""
    if "error" in job:
        return [f"fresh construction raised {job['error']}"], 1.0
    ours = results.of("native").arrays.get(f"initial-{number}", {})
    described = results.expected.examples[number]
    other = [
        f"{name}: dtype {job['dtypes'].get(name)} instead of {dtype}"
        for name, dtype in described["state_dtypes"].items()
        if name not in results.omitted and not _same(job["dtypes"].get(name), dtype)
    ]
    if other:
        return other, 1.0
    compared = {name: value for name, value in theirs.items() if value.size and name not in results.omitted}
    with ThreadPoolExecutor(JUDGES) as pool:  # sorting leaves the interpreter free
        exact = results.expected.exact_initial.get(number, {})
        verdicts = pool.map(lambda name: _judge(compared[name], ours.get(name), exact.get(name), described["state"][name], alpha), compared)
        judged = dict(zip(compared, verdicts, strict=True))
    wrong = [f"{name}: {problem}" for name, (problem, _) in judged.items() if problem]
    if not wrong:
        ours_equal, torch = copies({name: ours[name] for name in compared}), copies(compared)
        wrong = [f"{_both(names)} start with the same numbers, unlike torch's" for names in sorted(ours_equal - torch, key=_both)]
        wrong += [f"{_both(names)} start with the same numbers in torch, not here" for names in sorted(torch - ours_equal, key=_both)]
    return wrong, min((p for _, p in judged.values()), default=1.0)


def _both(names: frozenset[str]) -> str:
    return " and ".join(sorted(names))


def _same(ours: str | None, theirs: str) -> bool:
    """Whether a dtype equals torch's, up to jax's narrower defaults."""
    return ours is not None and NATIVE.get(ours, ours) == NATIVE.get(theirs, theirs)


def _judge(theirs: Array, ours: Array | None, exact: Array | None, shape: Sequence[int], alpha: float) -> tuple[str, float]:
    """A message on one parameter's values [constructions, elements], and the p-value. `exact` [elements] was constructed in float64."""
    if ours is None or ours.shape != theirs.shape:
        return "not there", 0.0
    constant = (theirs == theirs[0]).all(axis=0) | np.isnan(theirs).all(axis=0)
    exact = exact[constant] if exact is not None and exact.shape == constant.shape else None
    problem = _constant_problem(theirs[0][constant], ours[:, constant], exact)
    if problem or constant.all():
        return problem, 0.0 if problem else 1.0
    # The test needs an order, which complex numbers do not have.
    theirs, ours = (np.abs(value[:, ~constant]) if value.dtype.kind == "c" else value[:, ~constant] for value in (theirs, ours))
    if (ours == ours[0]).all():
        return "the same values in each construction, unlike torch's", 0.0
    one, other = Sample(theirs), Sample(ours)
    problem, p = distribution_problem(one, other, alpha / 2)
    return (problem or (structure_problem(one, other, shape, alpha / 2) if not constant.any() else "")), p


def _constant_problem(theirs: Array, ours: Array, exact: Array | None) -> str:
    """A message where constants [elements] differ from ours [constructions, elements], by more than rounding moved torch's own."""
    if not theirs.size:
        return ""
    scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0) or 1.0
    if np.allclose(ours, theirs[None], rtol=tolerances.INIT_CONSTANT, atol=tolerances.INIT_CONSTANT * scale, equal_nan=True):
        return ""
    if exact is not None and _within_own_error(theirs, ours, exact, scale):
        return ""
    return f"constant values differ (such as {ours.flat[0]:.4g} for {theirs.flat[0]:.4g})"


def _within_own_error(theirs: Array, ours: Array, exact: Array, scale: float) -> bool:
    """Whether ours are about as near to the float64 values as torch's are: sines of large angles lose the digits that the angles lack.

    Where torch's own are far from those, the constructor computes something else in float64, and they tell nothing.
    """
    if not (np.isfinite(theirs).all() and np.isfinite(ours).all() and np.isfinite(exact).all()):
        return False
    own = rms(np.abs(theirs - exact)) / scale
    limit = tolerances.INIT_CONSTANT + tolerances.FP32_FACTOR * own
    errors = np.abs(ours - exact[None]) / scale
    return own <= tolerances.CAP_FP64 and rms(errors) <= limit and float(errors.max()) <= tolerances.WORST_FACTOR * limit


CHECK = Check("numeric", "initialisation", judge, cost=NEW_PROCESS)
