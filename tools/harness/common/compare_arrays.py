"""Compares two arrays, and makes a verdict of the worst of many comparisons. numpy only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.sketches import Sketch
from migrate_agent.tools.types import Raised, Verdict

DROWNED = "drowned"
"""The kind of a difference that says nothing: rounding alone moves torch's own array by more than any limit allows."""
INFINITE = "infinite"
"""The kind of a difference that says nothing: torch's own gradient is nowhere finite, since its output is not."""
NOTHING = {
    DROWNED: "rounding alone moves torch's own result by more than any limit allows",
    INFINITE: "torch's own gradient is not finite, as its output is not",
}
"""Kinds of differences that say nothing → why."""


@dataclass(frozen=True)
class Difference:
    """One leaf's error and limit, relative to the reference's RMS; `problem` where the arrays cannot be compared element by element.

    `label` and `problem` are for people; `kind` says what sort of problem it is, `scenario` and `key` where it was found.
    """

    label: str
    measured: float
    limit: float
    problem: str = ""
    kind: str = ""
    scenario: str = ""
    key: str = ""
    raised: Raised | None = None

    def at(self, scenario: str, key: str = "") -> Difference:
        """The same with the place where it was found."""
        return replace(self, scenario=scenario, key=key)

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


def equal(one: Array, other: Array) -> bool:
    """Whether two arrays have equal numbers, NaN at the same places. Most have no NaN, and looking for these takes several times as long."""
    return np.array_equal(one, other) or np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def rms(value: Array) -> float:
    """Root mean square of the finite elements; 0 where there are none."""
    finite = np.abs(value[np.isfinite(value)])
    largest = float(finite.max(initial=0.0))
    # Scaled first: squares of large float64 values overflow, and those of small ones vanish.
    return largest * float(np.sqrt(np.mean((finite / largest) ** 2))) if largest > 0 else 0.0


def pattern_problem(expected: Array, actual: Array) -> str:
    """A message on the first difference of shapes, NaN or infinities; "" where there is none."""
    if expected.shape != actual.shape:
        return f"shape {list(actual.shape)} instead of {list(expected.shape)}"
    if expected.dtype.kind not in "fc" or actual.dtype.kind not in "fc":
        return ""
    for kind, test in (("NaN", np.isnan), ("inf", np.isinf)):
        wrong = int((test(expected) != test(actual)).sum())
        if wrong:
            return f"{kind} at other places ({wrong} of {expected.size} elements)"
    infinite = np.isinf(expected)
    # Complex infinities have no sign.
    if expected.dtype.kind == "f" and (np.sign(expected[infinite]) != np.sign(actual[infinite])).any():
        return "infinities of the other sign"
    return ""


def quiet() -> tuple[float, float]:
    """No noise, as `compare` takes it."""
    return 0.0, 0.0


def compare(
    label: str, expected: Array, actual: Any, noise: Callable[[], tuple[float, float]], floor: float, scale: float = 0.0
) -> Difference:
    """Compare a leaf with its expected value; both are arrays of any shape and dtype.

    `noise` returns the RMS and the largest of the absolute changes that rounding noise makes to
    `expected`. `floor` is the smallest limit, relative to the RMS of `expected`. `scale`, absolute, is
    the size below which that RMS counts as noise (see `tolerances.GLOBAL_SCALE`). Integers and booleans
    must be equal.
    """
    extremes = _Extremes.of(expected, actual)
    expected, actual = np.asarray(expected), np.asarray(actual)
    problem = pattern_problem(expected, actual)
    if problem:
        return Difference(label, float("inf"), 0.0, problem, "shape" if expected.shape != actual.shape else "nonfinite")
    if expected.dtype.kind not in "fc":
        wrong = float(np.mean(expected != actual)) if expected.size else 0.0
        return Difference(label, wrong, 0.0, f"{wrong:.2%} of the elements differ" if wrong else "", "values")
    size = max(rms(expected), scale)
    finite = np.isfinite(expected)
    usual = np.abs(np.where(finite, expected, 0))
    error = np.abs(np.where(finite, actual, 0) - np.where(finite, expected, 0))

    def worst(unit: float, changes: tuple[float, float], least: float) -> Difference:
        rows = (_worst(label, error, usual, unit, changes, least), *(row.difference(label, unit, changes, least) for row in extremes))
        return max(rows, key=lambda difference: difference.badness)

    noiseless = worst(size or 1.0, quiet(), floor)
    # Noise only widens the limit, up to the cap: a leaf that passes without it passes, and one
    # beyond the cap fails whatever the noise. So the costly perturbed runs can be skipped.
    decided = not noiseless.failed or worst(size, quiet(), tolerances.CAP_FP64).failed if size else not error.any()
    if decided:
        return noiseless
    changes = noise()
    return worst(size or (max(changes[1], 1e-300) if 0 < changes[1] < float("inf") else 1.0), changes, floor)


@dataclass(frozen=True)
class _Extremes:
    """The extremes of two sketched arrays, in order, and how many elements are in a sum of their sketches."""

    expected: Array
    actual: Array
    terms: float

    @classmethod
    def of(cls, expected: Any, actual: Any) -> tuple[_Extremes, ...]:
        """Those of two sketches, none of other arrays."""
        theirs, ours = (value.extremes if isinstance(value, Sketch) else None for value in (expected, actual))
        if theirs is None or ours is None or theirs.elements.shape != ours.elements.shape:
            return ()  # safe: the sketches themselves are compared all the same
        return (cls(theirs.elements, ours.elements, theirs.terms),)

    def difference(self, label: str, size: float, noise: tuple[float, float], floor: float) -> Difference:
        """The largest error, as one of an element. Noise of an element is seen in the sketch, less by the root of `terms`."""
        seen = noise[1] * self.terms**0.5
        limit = tolerances.WORST_FACTOR * min(max(floor, tolerances.NOISE_FACTOR * seen / size), tolerances.CAP_FP64)
        with np.errstate(invalid="ignore"):
            errors = np.abs(self.actual - self.expected) / (size + np.abs(self.expected))
        return Difference(f"{label} (one of the extremes)", float(errors.max(initial=0.0)), limit)


def _worst(label: str, error: Array, usual: Array, size: float, noise: tuple[float, float], floor: float) -> Difference:
    """The RMS of the errors or the largest one, whichever is larger in units of its limit. `usual` are the absolute expected values."""
    limit = min(max(floor, tolerances.NOISE_FACTOR * noise[0] / size), tolerances.CAP_FP64)
    average = Difference(label, rms(error) / size, limit)
    at_worst = tolerances.WORST_FACTOR * min(max(floor, tolerances.NOISE_FACTOR * noise[1] / size), tolerances.CAP_FP64)
    # An element's rounding error grows with the element, and where terms cancel with the size of
    # the leaf.
    largest = float((error / (size + usual)).max(initial=0.0))
    return max(average, Difference(f"{label} (one element)", largest, at_worst), key=lambda difference: difference.badness)


def verdict(stage: str, check: str, differences: Iterable[Difference], nothing: str = "") -> Verdict | None:
    """The worst difference as a verdict; None (or `unverified` with the reason `nothing`) where there is none to judge.

    `unverified` too where an array is nowhere more than noise; where it is so in some scenarios only, the others judge it.
    """
    every = list(differences)
    rows, noise = [row for row in every if row.kind not in NOTHING], [row for row in every if row.kind in NOTHING]
    if not every:
        return Verdict(stage, check, "unverified", detail=nothing) if nothing else None
    worst = max(rows, key=lambda difference: difference.badness, default=None)
    judged = {row.key for row in rows}
    unjudged = next((row for row in noise if row.key not in judged), None)
    if worst is None or (unjudged is not None and not worst.failed):
        detail = f"{unjudged.label}: {NOTHING[unjudged.kind]}, in every scenario" if unjudged else ""
        return Verdict(stage, check, "unverified", detail=detail)
    if worst.failed:
        text = worst.problem or f"error {worst.measured:.1e} over the limit {worst.limit:.1e}"
        measured = None if worst.problem else worst.measured
        limit, detail = None if worst.problem else worst.limit, f"{worst.label}: {text}"
        return Verdict(stage, check, "fail", measured, limit, detail, worst.scenario, worst.key, worst.kind or "values", None, worst.raised)
    beside = f", {len(noise)} more are rounding noise or not finite in torch too" if noise else ""
    return Verdict(stage, check, "pass", worst.measured, worst.limit, f"{len(rows)} leaves compared{beside}")
