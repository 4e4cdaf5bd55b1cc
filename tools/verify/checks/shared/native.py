"""Judges the candidate's native results (in the dtypes of a user's run) by the size of torch's own errors there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from migrate_agent.tools.harness.common import tolerances, trees
from migrate_agent.tools.harness.common.compare_arrays import DROWNED, Difference, pattern_problem, rms
from migrate_agent.tools.harness.common.input_sampling import Array, Extreme
from migrate_agent.tools.verify.compare.pairs import Pair, output_pairs, paired, raised_error
from migrate_agent.tools.verify.contract.scenario import Answer, Scenario
from migrate_agent.tools.verify.evidence.candidate import NATIVE, Results

LOST_DIGITS = 1e-3
"""Relative differences up to this one may come of the order of sums in float32."""


def native_differences(
    results: Results, *roles: str, narrow: bool | None = None, kinks: bool = False, left_out: list[str] | None = None
) -> Iterator[Difference]:
    """Errors of all native outputs in scenarios of these roles; only of those that torch computes in bfloat16 or float16, or of the others.

    `left_out` gets the scenarios of outputs that differ where torch's own are undecided.
    """
    for scenario, answer in results.answers(*roles, kind="native"):
        if (narrow is not None and narrow != bool(scenario.narrow)) or results.forgives(scenario, answer):
            continue
        if answer.error:
            yield raised_error(scenario, answer)
        elif paired(scenario, answer):
            yield from dtype_problems(scenario, answer)
            for exact, native in zip(output_pairs(scenario, answer), output_pairs(scenario, answer, "native/"), strict=True):
                if scenario.undefined:
                    hidden = scenario.extreme == Extreme.HIDDEN
                    exact, native = _of_infinities(exact, hidden), _of_infinities(native, hidden)
                if _loses_nan(exact, native):
                    native = _nan_as_in_float64(exact, native, results, scenario)
                alike = alike_in_width(scenario, answer)
                leaf = compare_native(exact, native, scenario, alike=alike, kinks=kinks)
                if leaf.failed and leaf.measured < LOST_DIGITS and scenario.gradient:
                    leaf = _as_optimised(leaf, exact, native, results, scenario, alike=alike, kinks=kinks)
                if not (leaf.failed and scenario.undecided(exact.key)):
                    yield leaf.at(scenario.name, exact.key)
                elif left_out is not None:
                    left_out.append(scenario.name)


def _as_optimised(
    leaf: Difference, exact: Pair, native: Pair, results: Results, scenario: Scenario, *, alike: bool, kinks: bool
) -> Difference:
    """The difference of the same run with all of the compiler's optimisations, where that passes.

    Gradients are compiled without them. Sums of thousands of numbers are added up one by one then, as no user's program does it.
    """
    answer = results.optimised(scenario)
    pairs = output_pairs(scenario, answer, "native/") if answer is not None and paired(scenario, answer) else ()
    other = next((pair for pair in pairs if pair.key == native.key), None)
    optimised = compare_native(exact, other, scenario, alike=alike, kinks=kinks) if other is not None else leaf
    return leaf if optimised.failed else optimised


def alike_in_width(scenario: Scenario, answer: Answer) -> bool:
    """Whether the candidate's program, its gradients included, computes in no float dtype below float32 but in the one that torch uses."""
    return answer.facts.get("narrow", "") in ("", scenario.narrow)


def _flushed(values: Array) -> Array:
    """Numbers as complex128, those without a normal form in float32 as zero: XLA flushes them, and the float64 answer is made of none."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, 0, values).astype(np.complex128)


def _of_infinities(pair: Pair, hidden: bool = False) -> Pair:
    """Where torch makes NaN of infinities on its way, which comes of the form of a formula: what is finite has to be finite, no more. Where a mask
    hides them, XLA may choose by the mask what torch multiplies by it."""
    actual = pair.got
    if actual is None or actual.shape != pair.expected.shape or actual.dtype.kind != pair.expected.dtype.kind:
        return pair
    finite = np.isfinite(actual) if actual.dtype.kind in "fc" else True
    excused = (np.isfinite(pair.expected) == finite) | (hidden & np.isnan(pair.expected) if actual.dtype.kind in "fc" else False)
    return pair._replace(got=np.where(excused, pair.expected, actual))


def _loses_nan(exact: Pair, native: Pair) -> bool:
    """Whether the candidate natively gives a number where torch has NaN in both precisions."""
    if (
        native.got is None
        or native.expected.dtype.kind not in "fc"
        or not exact.expected.shape == native.expected.shape == native.got.shape
    ):
        return False
    return bool((np.isnan(exact.expected) & np.isnan(native.expected) & ~np.isnan(native.got)).any())


def _nan_as_in_float64(exact: Pair, native: Pair, results: Results, scenario: Scenario) -> Pair:
    """The native pair with NaN where the candidate's own float64 run has it, or its run without a compiler, as torch has in both precisions.

    The formula has NaN there then. XLA may still give a number: `exp(x / 4 - max(x / 4))` of a single `-inf` is 0 in float32 on CPUs, and of
    `x * mask.astype(float)` it makes a choice by the mask in all precisions.
    """
    row = next((answer for other, answer in results.answers(scenario.role) if other.name == scenario.name and not answer.error), None)
    native = _with_nan_of(row, exact, native, scenario)
    return _with_nan_of(results.uncompiled(scenario), exact, native, scenario) if _loses_nan(exact, native) else native


def _with_nan_of(answer: Answer | None, exact: Pair, native: Pair, scenario: Scenario) -> Pair:
    """The native pair with NaN where an answer has it too, as torch has in both precisions."""
    other = next((pair.got for pair in output_pairs(scenario, answer) if pair.key == exact.key), None) if answer is not None else None
    if other is None or native.got is None or other.shape != native.got.shape:
        return native
    of_formula = np.isnan(exact.expected) & np.isnan(native.expected) & np.isnan(other)
    return native._replace(got=np.where(of_formula, native.expected, native.got))


def dtype_problems(scenario: Scenario, answer: Answer) -> Iterator[Difference]:
    """Outputs of another dtype than torch's, jax's narrower defaults granted."""
    theirs, ours, dtypes = trees.items(scenario.tree), trees.items(answer.facts["tree"]), scenario.native or ()
    for number, (their, our) in enumerate(zip(theirs, ours, strict=False)):
        if not isinstance(their, trees.Leaf) or not isinstance(our, trees.Leaf):
            continue
        expected, actual = dtypes[their.number], answer.facts["dtypes"][our.number]
        # jax has no 64 bits unless a user enables them, so that the width is no choice of the candidate's.
        if NATIVE.get(expected, expected) != NATIVE.get(actual, actual):
            problem = f"dtype {actual} instead of {expected}"
            yield Difference(f"{scenario.name} output {number}", float("inf"), 0.0, problem, "dtype", scenario.name)


def compare_native(exact: Pair, native: Pair, scenario: Scenario, *, alike: bool = True, kinks: bool = False) -> Difference:
    """Errors of both sides against the float64 answer, relative to its RMS. Where torch overflows, so may the candidate.

    What rounding in torch's dtype does is no measure of a candidate that is not `alike` in width (`alike_in_width`).
    """
    dtype = scenario.narrow or "float32"
    label = f"{exact.label} ({dtype})"
    if native.got is None:
        return Difference(label, float("inf"), 0.0, "the candidate gave none", "missing")
    if kinks and not _tells(exact.expected, native.expected):
        return Difference(label, 0.0, tolerances.CAP_FP64)
    expected = _where_torch_agrees(exact.expected, native.expected, native.got)
    in_half = dtype == "float16" and not scenario.wide
    got = _without_outliers(exact.expected, expected, native.got) if in_half else native.got
    problem = pattern_problem(expected, got)
    if problem:
        same_shape = expected.shape == got.shape
        return Difference(label, float("inf"), 0.0, problem, "nonfinite" if same_shape else "shape")
    if exact.expected.dtype.kind not in "fc":
        return _whole(label, exact, native, dtype)
    epsilon = tolerances.EPS_NATIVE[dtype]
    finite = np.isfinite(exact.expected) & np.isfinite(expected)
    truth, torchs, ours = (_flushed(np.where(finite, value, 0)) for value in (exact.expected, expected, got))
    size = rms(np.abs(truth)) or 1.0
    own = rms(np.abs(torchs - truth)) / size
    conditioning = partial(_conditioning, scenario, exact.key, dtype, size, kinks=kinks) if alike else tuple
    terms = min(scenario.input_elements / max(exact.expected.size, 1), tolerances.MOST_TERMS)
    totals = (tolerances.FLOOR_EQUAL_TERM if kinks else tolerances.FLOOR_TERM) * terms * epsilon
    floor = max(tolerances.FLOOR_FP32, totals) if dtype == "float32" else tolerances.FLOOR_NARROW * epsilon
    leaf = _conditioned(label, rms(np.abs(ours - truth)) / size, tolerances.FP32_FACTOR * own, floor, conditioning)
    # At the edges rounding of equal numbers has one direction (the mean of a constant image), which noise without one does not show.
    tells = leaf.limit < tolerances.NOISE_AT_EDGES or (leaf.measured > 1 and leaf.limit < 1)
    return replace(leaf, measured=0.0) if kinks and leaf.failed and not tells else leaf


def _tells(exact: Array, native: Array) -> bool:
    """Whether torch's own native answer is one: where it overflows, or is far off, rounding decides what comes out, NaN too."""
    if exact.dtype.kind not in "fc" or exact.shape != native.shape:
        return True
    finite = np.isfinite(exact)
    if bool((finite != np.isfinite(native)).any()):
        return False
    truth, torchs = (np.where(finite, value, 0).astype(np.complex128) for value in (exact, native))
    return rms(np.abs(torchs - truth)) <= tolerances.FAR_OFF * (rms(np.abs(truth)) or 1.0)


def _where_torch_agrees(exact: Array, native: Array, actual: Array) -> Array:
    """torch's native answer, with its exact one where an overflow parts the two and the candidate has no such overflow.

    Whether a formula overflows in a narrow dtype is up to its form; what does not overflow has the exact answer.
    """
    if exact.dtype.kind not in "fc" or actual.dtype.kind not in "fc" or not exact.shape == native.shape == actual.shape:
        return native
    apart = (np.isnan(exact) != np.isnan(native)) | (np.isinf(exact) != np.isinf(native))
    like_exact = (np.isnan(exact) == np.isnan(actual)) & (np.isinf(exact) == np.isinf(actual))
    return np.where(apart & like_exact, exact, native)


def _without_outliers(exact: Array, expected: Array, actual: Array) -> Array:
    """What the candidate gives, with torch's answer where one element in a hundred, far beyond the others, is infinite in float16.

    `y / sigmoid(x)` is that large only where the gate is less than a unit of the dtype: torch rounds the gate once, XLA each of its steps, to 0. A
    gate of zero gives no NaN, and no infinity of the other sign; nor does one that torch computes in float32. Where torch's own answer overflows at many
    elements, a tenth as many may do so beside them, among those that are large.
    """
    if exact.dtype.kind != "f" or actual.dtype.kind != "f" or not exact.shape == expected.shape == actual.shape:
        return actual
    lost = np.isfinite(exact) & np.isfinite(expected) & np.isinf(actual) & (np.sign(actual) == np.sign(exact))
    count = int(lost.sum())
    overflows = int((np.isfinite(exact) & np.isinf(expected)).sum())
    beside_others = count <= overflows * tolerances.LOST_BESIDE
    if not 0 < count <= max(1, lost.size * tolerances.OUTLIERS):
        return actual
    usual = float(np.median(np.abs(exact[np.isfinite(exact)])))
    smallest = float(np.abs(exact[lost]).min())
    outlying = smallest >= usual * (tolerances.LARGE_BESIDE if beside_others else 1 / tolerances.EPS_NATIVE["float16"])
    return np.where(lost, expected, actual) if outlying else actual


def _conditioned(label: str, error: float, own: float, floor: float, conditioning: Callable[[], Iterable[float]]) -> Difference:
    """The error beside `own` and the floor, or beside what conditioning allows, where the floor is not enough."""
    limit = own + floor
    # Noise only widens the limit, so the runs that measure it are saved.
    if not error <= limit:
        for allowed in conditioning():
            limit = max(limit, own + allowed)
            if error <= limit:
                break
    return Difference(label, error, limit)


def _conditioning(scenario: Scenario, key: str, dtype: str, size: float, *, kinks: bool = False) -> Iterator[float]:
    """How far rounding in this dtype may move an array, relative to `size`: as noise of one ulp of float64 does, scaled, then as noise of the dtype's own size
    does, in more and more runs."""
    factor = tolerances.NOISE_FACTOR_FP32 if dtype == "float32" else tolerances.NOISE_FACTOR_NARROW
    rounding, _ = scenario.changes_by_noise(key)
    if not np.isfinite(rounding):
        yield tolerances.CAP_FP64
        return
    yield factor * rounding * (tolerances.EPS_NATIVE[dtype] / tolerances.EPS64) / size
    for change in scenario.changes_by_native_noise(key) if kinks else ():
        yield tolerances.KINK_FACTOR * change / size if np.isfinite(change) else tolerances.CAP_FP64


def compare_native_gradient(
    pair: Pair, native: Array, scenario: Scenario, largest: float, *, alike: bool = True, others: Sequence[Scenario] = ()
) -> Difference:
    """Errors of both sides against the float64 gradient, where torch's own is finite.

    Which elements of an array overflow is up to the order of its sums: as many as torch's own has lost, the candidate may lose beside these.
    `largest` is the RMS of the largest gradient. A candidate that is not `alike` in width (`alike_in_width`) is held to torch's own error.
    `others`: the other gradients of the example. A kink is crossed or not, and by few of the runs with noise: where the ones of this scenario crossed
    none so large, those of another one tell how far a gradient of this unit jumps.
    """
    dtype = scenario.narrow or "float32"
    label = f"{pair.label} ({dtype})"
    if pair.got is None or pair.got.shape != pair.expected.shape:
        return Difference(label, float("inf"), 0.0, "the candidate gave none of this shape", "shape")
    finite = np.isfinite(pair.expected) & np.isfinite(native)
    lost = int((finite & ~np.isfinite(pair.got)).sum())
    if lost > int((np.isfinite(pair.expected) & ~np.isfinite(native)).sum()):
        return Difference(label, float("inf"), 0.0, f"not finite, where torch's is ({lost} of {finite.size} elements)", "nonfinite")
    finite &= np.isfinite(pair.got)
    truth, torchs, ours = (np.where(finite, value, 0).astype(np.complex128) for value in (pair.expected, native, pair.got))
    epsilon = tolerances.EPS_NATIVE[dtype]
    vanishes = alike and rms(np.abs(truth)) <= tolerances.VANISHING * largest
    share = tolerances.GLOBAL_SCALE_VANISHING if vanishes else tolerances.GLOBAL_SCALE_NATIVE
    size = max(rms(np.abs(truth)), share * largest) or 1.0
    floor = tolerances.FLOOR_GRADIENT_FP32 if dtype == "float32" else tolerances.FLOOR_GRADIENT_NARROW * epsilon
    floor = floor if alike else min(floor, tolerances.FLOOR_GRADIENT_NARROWED)
    own = tolerances.FP32_FACTOR * rms(np.abs(torchs - truth)) / size
    conditioning = partial(_conditioning, scenario, pair.key, dtype, size, kinks=True) if alike else tuple
    leaf = _conditioned(label, rms(np.abs(ours - truth)) / size, own, floor, conditioning)
    for other in others if alike else ():
        if leaf.failed and (there := rms(np.abs(other.arrays.get(pair.key, np.zeros(1))))):
            for change in other.changes_by_native_noise(pair.key):
                jump = tolerances.KINK_FACTOR * change / there * rms(np.abs(truth)) / size if np.isfinite(change) else 0.0
                leaf = replace(leaf, limit=max(leaf.limit, own + jump)) if leaf.failed else leaf
    # A limit of the gradient's own size lets everything through that is not larger: nothing is judged then.
    return replace(leaf, measured=0.0, kind=DROWNED) if leaf.failed and leaf.limit >= 1 else leaf


def _defined(value: Array) -> Array:
    """Where an int is a result: x86 converts NaN, infinities and numbers out of range to the lowest int."""
    return value != np.iinfo(value.dtype).min if value.dtype.kind == "i" else np.ones(value.shape, bool)


def _whole(label: str, exact: Pair, native: Pair, dtype: str) -> Difference:
    """Integers and booleans: rounding may tip a comparison or an argmax, in torch as well. (In float64 all must be equal.)"""
    if native.got is None or not native.expected.size:
        return Difference(label, 0.0, 0.0)
    defined = _defined(native.expected)
    wrong = float(np.mean(defined & (native.expected != native.got)))
    tipped = float(np.mean(defined & (native.expected != exact.expected)))
    share = tolerances.TIPPED[dtype == "float32"]
    limit = tolerances.FP32_FACTOR * tipped + (share if share * native.expected.size >= 1 else 0.0)
    return Difference(label, wrong, limit, f"{wrong:.2%} of the elements differ" if wrong > limit else "")
