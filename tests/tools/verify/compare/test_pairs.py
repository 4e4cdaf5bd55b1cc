"""Arrays that are no more than rounding noise in torch too."""

from __future__ import annotations

import numpy as np
import pytest

from migrate_agent.tools.harness.common.compare_arrays import DROWNED, verdict
from migrate_agent.tools.verify.compare.pairs import Pair, judged, vanishes
from migrate_agent.tools.verify.contract.scenario import NoiseOfScenario, Role, Scenario


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
