"""Arrays that are no more than rounding noise in torch too."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from migrate_agent.tools.harness.common.compare_arrays import DROWNED, verdict
from migrate_agent.tools.verify.checks.shared.outputs import named_differences
from migrate_agent.tools.verify.compare.pairs import Pair, judged, vanishes
from migrate_agent.tools.verify.contract.scenario import Answer, NoiseOfScenario, Role, Scenario


def scenario(noise: float | None) -> Scenario:
    """One whose gradient `grad/w` moves by so much with rounding noise; None: it is not known."""
    changes = None if noise is None else {"grad/w": [noise, noise]}
    return Scenario(name="a", role=Role.GRADIENT, noise=NoiseOfScenario(changes))


@pytest.mark.parametrize(
    ("noise", "kind", "failed"),
    [(0.0, "", True), (1e-9, "", True), (1e-4, DROWNED, False), (None, "", True)],
)
def test_noise_is_not_compared_with_noise(noise: float | None, kind: str, failed: bool) -> None:
    leaf = judged(scenario(noise), Pair("w", "grad/w", np.ones(3), np.full(3, 2.0)), 1e-10)
    assert (leaf.kind, leaf.failed) == (kind, failed)


@pytest.mark.parametrize(
    ("noise", "expected", "got", "zero"),
    [(1e-15, 1e-15, -1e-15, True), (0.0, 1e-15, -1e-15, False), (1e-15, 1e-15, 1e-9, False), (1e-3, 1e-3, 1e-4, False)],
)
def test_a_gradient_that_is_zero_on_both_sides_but_for_rounding(noise: float, expected: float, got: float, zero: bool) -> None:
    assert vanishes(scenario(noise), Pair("w", "grad/w", np.full(3, expected), np.full(3, got))) is zero


def test_other_places_of_nan_are_no_noise() -> None:
    assert judged(scenario(1e-4), Pair("w", "grad/w", np.ones(3), np.array([1.0, np.nan, 1.0])), 1e-10).failed


def test_an_array_that_is_nowhere_more_than_noise_leaves_the_unit_unverified() -> None:
    right, wrong = (Pair("w", "grad/w", np.ones(3), np.full(3, value)) for value in (1.0, 2.0))
    noise, decided, refused = judged(scenario(1e-4), wrong, 1e-10), judged(scenario(0.0), right, 1e-10), judged(scenario(0.0), wrong, 1e-10)
    for rows, status in (
        ([noise], "unverified"),
        ([noise, decided], "pass"),
        ([noise, refused], "fail"),
        ([noise, decided, refused], "fail"),
    ):
        outcome = verdict("numeric", "gradients_parameters", rows)
        assert outcome is not None and outcome.status == status


class Given:
    """One scenario and what the candidate gave in it, in place of the results of a run."""

    def __init__(self, asked: Scenario, answer: Answer) -> None:
        self.row = (asked, answer)

    def answers(self, *roles: str) -> tuple[tuple[Scenario, Answer], ...]:
        """As of results."""
        return (self.row,)


@pytest.mark.parametrize(
    ("output", "theirs", "ours", "failed"),
    [(np.nan, np.nan, 0.0, False), (1.0, np.nan, 0.0, True), (np.nan, 1.0, np.nan, True), (np.nan, 1.0, 2.0, True)],
)
def test_gradients_that_nan_of_the_output_spoils_are_up_to_conventions(output: float, theirs: float, ours: float, failed: bool) -> None:
    arrays = {"out/0": np.array([output, 1.0]), "grad/w": np.array([theirs, 1.0])}
    asked = Scenario(name="a", role=Role.GRADIENT, noise=NoiseOfScenario({}), arrays=arrays)
    results = cast("Any", Given(asked, Answer({"draws": []}, {"grad/w": np.array([ours, 1.0])})))
    assert [leaf.failed for leaf in named_differences(results, "grad", Role.GRADIENT, floor=1e-10)] == [failed]


@pytest.mark.parametrize(("theirs", "status"), [([np.nan, np.nan], "unverified"), ([np.nan, 1.0], "pass")])
def test_gradients_that_are_nowhere_finite_leave_the_unit_unverified(theirs: list[float], status: str) -> None:
    arrays = {"out/0": np.array([np.nan, 1.0]), "grad/w": np.array(theirs)}
    asked = Scenario(name="a", role=Role.GRADIENT, noise=NoiseOfScenario({}), arrays=arrays)
    results = cast("Any", Given(asked, Answer({"draws": []}, {"grad/w": np.array([2.0, 1.0])})))
    outcome = verdict("numeric", "gradients_parameters", list(named_differences(results, "grad", Role.GRADIENT, floor=1e-10)))
    assert outcome is not None and outcome.status == status


@pytest.mark.parametrize(
    ("theirs", "ours", "status"),
    [([1e-150, 2e-150], [3e-150, -1e-150], "unverified"), ([1e-150, 2e-150], [1.0, 1.0], "fail"), ([1e-20, 2e-20], [1e-20, 3e-20], "fail")],
)
def test_gradients_that_saturation_left_are_not_compared(theirs: list[float], ours: list[float], status: str) -> None:
    asked = Scenario(name="a", role=Role.GRADIENT, noise=NoiseOfScenario({}), arrays={"out/0": np.ones(2), "grad/w": np.array(theirs)})
    results = cast("Any", Given(asked, Answer({"draws": []}, {"grad/w": np.array(ours)})))
    outcome = verdict("numeric", "gradients_parameters", named_differences(results, "grad", Role.GRADIENT, floor=1e-10))
    assert outcome is not None and outcome.status == status
