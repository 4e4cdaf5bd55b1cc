"""How two arrays are compared, and how the worst of many comparisons becomes a verdict. numpy only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.types import Verdict


@dataclass(frozen=True)
class Difference:
    """One leaf's error and limit, relative to the reference's RMS; `problem` where the arrays cannot be compared element by element."""

    label: str
    measured: float
    limit: float
    problem: str = ""

    @property
    def failed(self) -> bool:
        """Whether the leaf is beyond its limit."""
        return bool(self.problem) or not self.measured <= self.limit

    @property
    def badness(self) -> float:
        """Error in units of the limit; infinite for a problem."""
        if self.problem or np.isnan(self.measured):
            return float("inf")
        return self.measured / self.limit if self.limit else float("inf") if self.measured else 0.0


def rms(value: Array) -> float:
    """Root mean square of the finite elements; 0 where there are none."""
    finite = np.abs(value[np.isfinite(value)])
    largest = float(finite.max(initial=0.0))
    return largest * float(np.sqrt(np.mean((finite / largest) ** 2))) if largest > 0 else 0.0


def pattern_problem(expected: Array, got: Array) -> str:
    """Where shapes, NaN or infinities differ, in words."""
    if expected.shape != got.shape:
        return f"shape {list(got.shape)} instead of {list(expected.shape)}"
    if expected.dtype.kind not in "fc" or got.dtype.kind not in "fc":
        return ""
    for what, test in (("NaN", np.isnan), ("inf", np.isinf)):
        wrong = int((test(expected) != test(got)).sum())
        if wrong:
            return f"{what} at other places ({wrong} of {expected.size} elements)"
    infinite = np.isinf(expected)
    if expected.dtype.kind == "f" and (np.sign(expected[infinite]) != np.sign(got[infinite])).any():
        return "infinities of the other sign"
    return ""


def quiet() -> tuple[float, float]:
    """The noise of what has none."""
    return 0.0, 0.0


def compare(
    label: str, expected: Array, got: Any, noise: Callable[[], tuple[float, float]], floor: float, scale: float = 0.0
) -> Difference:
    """Compare a leaf with what it must be.

    `noise` gives the RMS and the largest change, absolute, that rounding noise makes to `expected`; it is asked for only where the verdict
    hangs on it. `scale`, absolute, is the size below which the leaf's own RMS is taken to be noise (see `limits.GLOBAL_SCALE`). Integers
    and booleans must be equal.
    """
    expected, got = np.asarray(expected), np.asarray(got)
    problem = pattern_problem(expected, got)
    if problem:
        return Difference(label, float("inf"), 0.0, problem)
    if expected.dtype.kind not in "fc":
        wrong = float(np.mean(expected != got)) if expected.size else 0.0
        return Difference(label, wrong, 0.0, f"{wrong:.2%} of the elements differ" if wrong else "")
    size = max(rms(expected), scale)
    finite = np.isfinite(expected)
    usual = np.abs(np.where(finite, expected, 0))
    error = np.abs(np.where(finite, got, 0) - np.where(finite, expected, 0))
    found = _worst(label, error, usual, size or 1.0, quiet(), floor)
    decided = not found.failed or _worst(label, error, usual, size, quiet(), tolerances.CAP_FP64).failed if size else not error.any()
    if decided:
        return found
    told = noise()
    return _worst(label, error, usual, size or (max(told[1], 1e-300) if 0 < told[1] < float("inf") else 1.0), told, floor)


def _worst(label: str, error: Array, usual: Array, size: float, noise: tuple[float, float], floor: float) -> Difference:
    """The average of the errors or the largest one, whichever is further beyond its limit. `usual` are the absolute values expected."""
    limit = min(max(floor, tolerances.NOISE_FACTOR * noise[0] / size), tolerances.CAP_FP64)
    average = Difference(label, rms(error) / size, limit)
    at_worst = tolerances.WORST_FACTOR * min(max(floor, tolerances.NOISE_FACTOR * noise[1] / size), tolerances.CAP_FP64)
    largest = float((error / (size + usual)).max(initial=0.0))
    return max(average, Difference(f"{label} (one element)", largest, at_worst), key=lambda difference: difference.badness)


def verdict(stage: str, check: str, differences: Iterable[Difference], nothing: str = "") -> Verdict | None:
    """The worst difference as a verdict; None (or `unverified` with the reason `nothing`) where there is none to judge."""
    found = list(differences)
    if not found:
        return Verdict(stage, check, "unverified", detail=nothing) if nothing else None
    worst = max(found, key=lambda difference: difference.badness)
    if worst.failed:
        text = worst.problem or f"error {worst.measured:.1e} over the limit {worst.limit:.1e}"
        measured = None if worst.problem else worst.measured
        return Verdict(stage, check, "fail", measured, None if worst.problem else worst.limit, f"{worst.label}: {text}")
    return Verdict(stage, check, "pass", worst.measured, worst.limit, f"{len(found)} leaves compared")
