"""Brings together what the original gave and what the candidate gave, leaf by leaf."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from migrate_agent.tools.harness.common import tolerances, trees
from migrate_agent.tools.harness.common.compare_arrays import DROWNED, Difference, compare, quiet, rms
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.verify.contract.scenario import MALFORMED, Answer, Scenario

GRADIENTS = ("grad", "input-grad")
"""Kinds of arrays with names."""
LEAST_NATIVE = float(np.finfo(np.float32).tiny)
UNPAIRED = "the two sides draw random numbers in another order or shape"


class Pair(NamedTuple):
    """A leaf on both sides; `got` is None where the candidate gave none. `key` is empty for a plain number that is no float."""

    label: str
    key: str
    expected: Array
    got: Array | None
    scenario: str = ""


def output_pairs(scenario: Scenario, answer: Answer, prefix: str = "") -> list[Pair]:
    """The outputs of a scenario. Empty where the trees differ, which `output_tree` reports."""
    theirs, ours = scenario.tree, answer.facts["tree"]
    if trees.skeleton(theirs) != trees.skeleton(ours):
        return []
    pairs = []
    for number, (their, our) in enumerate(zip(trees.items(theirs), trees.items(ours), strict=True)):
        key = f"{prefix}out/{their.number}" if isinstance(their, trees.Leaf) else f"{prefix}number/{number}"
        key = key if key in scenario.arrays or isinstance(their, trees.Leaf) else ""
        expected = scenario.arrays[key] if key else np.asarray(their)
        actual = answer.arrays.get(f"out/{our.number}") if isinstance(our, trees.Leaf) else np.asarray(our)
        pairs.append(Pair(f"{scenario.name} output {number}", key, expected, actual, scenario.name))
    return pairs


def named_pairs(scenario: Scenario, answer: Answer, kind: str, omitted: Collection[str] = ()) -> list[Pair]:
    """The arrays of a kind (`state`, `grad`, `input-grad`) by their names; of the state also what the candidate alone changed."""
    expected = {**scenario.arrays, **(answer.given if kind == "state" else {})}
    keys = [key for key in expected if key.startswith(kind + "/") and key.partition("/")[2] not in omitted]
    return [Pair(f"{scenario.name} {key}", key, expected[key], answer.arrays.get(key), scenario.name) for key in keys]


def paired(scenario: Scenario, answer: Answer) -> bool:
    """Whether both sides drew the same random numbers (`bernoulli`, which always keeps, aside), be it with other axes of length one."""

    def kinds(draws: Sequence[Sequence[Any]]) -> list[tuple[Any, list[Any]]]:
        masks = [(draw[0], [size for size in draw[1] if size != 1]) for draw in drawn(draws) if draw[0] != "bernoulli"]
        return sorted(masks, key=lambda draw: str(draw[0]))

    return kinds(scenario.draws) == kinds(answer.facts["draws"])


def gradient_pairs(scenario: Scenario, answer: Answer) -> list[Pair]:
    """The gradients by parameters, then those by inputs."""
    return [pair for kind in GRADIENTS for pair in named_pairs(scenario, answer, kind)]


def raised_error(scenario: Scenario, answer: Answer) -> Difference:
    """The difference of a candidate that raises where the original does not."""
    return Difference(scenario.name, float("inf"), 0.0, answer.error, "raised", scenario.name, raised=answer.raised)


def draws_of(side: Scenario | Answer) -> Any:
    """The draws of either side, as rows of kind, shape and rate."""
    return side.draws if isinstance(side, Scenario) else side.facts["draws"]


def drawn(draws: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """The draws (kind, shape, rate) of at least one number: of none, torch's dropout draws nothing, and others draw that."""
    return [draw for draw in draws if 0 not in draw[1]]


def difference(scenario: Scenario, pair: Pair, floor: float, scale: float = 0.0) -> Difference:
    """The error of a pair in float64."""
    if pair.got is None:
        return Difference(pair.label, float("inf"), 0.0, "the candidate gave none", "missing").at(scenario.name, pair.key)
    leaf = compare(pair.label, pair.expected, pair.got, lambda: scenario.changes_by_noise(pair.key), floor, scale)
    return leaf.at(scenario.name, pair.key)


def where_finite(pair: Pair) -> Pair:
    """The pair with torch's own values where these are not finite: nothing is asked of the candidate there."""
    if pair.got is None or pair.got.shape != pair.expected.shape:
        return pair
    return pair._replace(got=np.where(np.isfinite(pair.expected), pair.got, pair.expected))


def gives_nan(scenario: Scenario) -> bool:
    """Whether torch's own outputs have NaN in a scenario: which gradients these spoil is up to conventions (`relu` of NaN passes torch's gradient on)."""
    outputs = (value for key, value in scenario.arrays.items() if key.startswith("out/"))
    return any(value.dtype.kind in "fc" and bool(np.isnan(value).any()) for value in outputs)


def judged(scenario: Scenario, pair: Pair, floor: float, scale: float = 0.0) -> Difference:
    """The error of a pair in float64; `DROWNED` where it is beyond the limit, and torch's own array is noise by as much."""
    leaf = difference(scenario, pair, floor, scale)
    # Asked of wrong values alone: other places of NaN are no noise, and the answer may cost a run of the original.
    if not leaf.failed or leaf.problem or not _drowned(scenario, pair, scale):
        return leaf
    return Difference(leaf.label, 0.0, leaf.limit, kind=DROWNED).at(scenario.name, pair.key)


def vanishes(scenario: Scenario, pair: Pair) -> bool:
    """Whether a gradient is zero but for rounding on both sides: it is tiny, and rounding moves torch's own by as much as either is."""
    noise, _ = scenario.changes_by_noise(pair.key)
    sides = (pair.expected, pair.got) if pair.got is not None else ()
    most = min(tolerances.NOISE_FACTOR * noise, tolerances.FLOOR_GRADIENT_FP64) if np.isfinite(noise) else 0.0
    return bool(sides) and all(rms(side) <= most for side in sides)


def _drowned(scenario: Scenario, pair: Pair, scale: float) -> bool:
    noise, _ = scenario.changes_by_noise(pair.key)
    return np.isfinite(noise) and tolerances.NOISE_FACTOR * noise > tolerances.CAP_FP64 * max(rms(pair.expected), scale)


def doubtful(answers: Iterable[tuple[Scenario, Answer]]) -> set[str]:
    """Names of the scenarios in which an array is not as close in float64 as it mostly is: a verdict may hang on what rounding noise does there."""
    return {scenario.name for scenario, answer in answers if not answer.error and _doubtful(scenario, answer)}


def _doubtful(scenario: Scenario, answer: Answer) -> bool:
    try:
        if not paired(scenario, answer):
            return False
        scale = tolerances.GLOBAL_SCALE * largest_gradient(scenario)
        pairs = [(pair, tolerances.FLOOR_FP64, 0.0) for pair in (*output_pairs(scenario, answer), *named_pairs(scenario, answer, "state"))]
        pairs += [(pair, tolerances.FLOOR_GRADIENT_FP64, scale) for pair in gradient_pairs(scenario, answer)]
        differences = (
            compare(pair.label, pair.expected, pair.got, quiet, floor, size) for pair, floor, size in pairs if pair.got is not None
        )
        return any(difference.failed for difference in differences)
    except MALFORMED:  # the checks say so
        return False


def largest_gradient(scenario: Scenario) -> float:
    return max((rms(value) for key, value in scenario.arrays.items() if "grad/" in key), default=0.0)


def saturated(pair: Pair, largest: float) -> bool:
    """Whether a gradient is smaller on both sides than float32 has normal numbers, as is the `largest` one: what saturation left, 1e-150 in float64, is no
    gradient of any native program, and hangs on how terms of its size cancel."""
    if pair.got is None or pair.got.shape != pair.expected.shape or not 0 < largest < LEAST_NATIVE:
        return False
    return rms(pair.got) < LEAST_NATIVE and bool(np.isfinite(pair.got).all())


def hopeless(scenario: Scenario, answer: Answer) -> bool:
    """Whether an output of this call is wrong however ill-conditioned the unit is: a check on what is there already fails."""
    if answer.error or not paired(scenario, answer):
        return bool(answer.error)
    pairs = output_pairs(scenario, answer)
    if not pairs:
        return bool(trees.skeleton(scenario.tree) != trees.skeleton(answer.facts["tree"]))
    return any(
        pair.got is None
        or pair.got.shape != pair.expected.shape
        or ((pair.expected.dtype.kind not in "fc" or rms(pair.expected) > 0) and difference(scenario, pair, tolerances.CAP_FP64).failed)
        for pair in pairs
    )
