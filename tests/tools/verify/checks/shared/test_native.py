"""Comparison of native outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

from migrate_agent.tools.harness.common.compare_arrays import DROWNED
from migrate_agent.tools.verify.checks.shared.native import (
    _loses_nan,
    _nan_as_in_float64,
    _of_infinities,
    compare_native,
    compare_native_gradient,
    native_differences,
)
from migrate_agent.tools.verify.compare.pairs import Pair
from migrate_agent.tools.verify.contract.scenario import Answer, NoiseOfScenario, Role, Scenario

QUIET = Scenario(name="a", role=Role.GRADIENT, noise=NoiseOfScenario({}))


class _Stages:
    """Native noise in stages, and how many of them were asked for."""

    def __init__(self, *sizes: float | None, key: str = "grad/w") -> None:
        self.sizes, self.key, self.asked = sizes, key, 0

    def of_scenario(self, name: str) -> NoiseOfScenario:
        return NoiseOfScenario({})

    def native(self, name: str) -> Iterator[dict[str, list[float]] | None]:
        for size in self.sizes:
            self.asked += 1
            yield None if size is None else {self.key: [size, size]}


def _gradient(stages: _Stages, name: str = "a", **options: Any) -> Scenario:
    """A scenario with gradients and this native noise."""
    return Scenario(name=name, role=Role.GRADIENT, gradient=True, native=("float32",), noise_source=cast(Any, stages), **options)


@pytest.mark.parametrize(
    ("theirs", "ours", "failed"),
    [(np.nan, np.inf, False), (np.nan, 1.0, True), (np.inf, np.nan, False), (1.0, np.inf, True), (1.0, 2.0, False)],
)
def test_where_infinities_make_nan_only_what_is_finite_counts(theirs: float, ours: float, failed: bool) -> None:
    pair = _of_infinities(Pair("out", "out/0", np.array(theirs, np.float32), np.array(ours, np.float32)))
    assert compare_native(pair, pair, QUIET).failed == failed


@pytest.mark.parametrize(("ours", "failed"), [(1.0 + 1e-4, False), (1.1, True)])
def test_native_errors_are_judged_where_the_noise_is_not_known(ours: float, failed: bool) -> None:
    exact, native = (Pair("out", "out/0", np.array([1.0]), np.array([ours])) for _ in range(2))
    assert compare_native(exact, native, Scenario(name="a", role=Role.SEED, noise=NoiseOfScenario(None))).failed == failed


@pytest.mark.parametrize(("ours", "failed"), [(np.inf, False), (1e3, False), (2e3, True), (np.nan, True), (-np.inf, True)])
def test_where_torch_overflows_natively_the_exact_answer_is_right_too(ours: float, failed: bool) -> None:
    exact = Pair("out", "out/0", np.array([1e3, 1.0]), None)
    native = Pair("out", "out/0", np.array([np.inf, 1.0], np.float32), np.array([ours, 1.0], np.float32))
    assert compare_native(exact, native, QUIET).failed == failed


@pytest.mark.parametrize(("exact", "ours", "failed"), [(3e-39, 0.0, False), (3e-39, 3e-39, False), (3e-37, 0.0, True), (1.0, 0.0, True)])
def test_numbers_without_a_normal_form_count_as_zero(exact: float, ours: float, failed: bool) -> None:
    theirs = 0.0 if exact < 1e-38 else exact  # torch flushes them too where it is asked to
    answer, native = Pair("out", "out/0", np.array([exact]), None), Pair("out", "out/0", np.array([theirs]), np.array([ours]))
    assert compare_native(answer, native, QUIET).failed == failed


@pytest.mark.parametrize(
    ("large", "ours", "count", "narrow", "wide", "failed"),
    [
        (3e4, np.inf, 1, "float16", (), False),
        (-3e4, -np.inf, 1, "float16", (), False),
        (900.0, np.inf, 1, "float16", (), True),
        (3e4, np.inf, 2, "float16", (), True),
        (3e4, np.inf, 1, "bfloat16", (), True),
        (3e4, np.inf, 1, "", (), True),
        (3e4, np.nan, 1, "float16", (), True),
        (3e4, -np.inf, 1, "float16", (), True),
        (3e4, np.inf, 1, "float16", ("sigmoids",), True),
    ],
)
def test_in_float16_an_outlier_may_overflow(
    large: float, ours: float, count: int, narrow: str, wide: tuple[str, ...], failed: bool
) -> None:
    scenario = Scenario(name="a", role=Role.NARROW, noise=NoiseOfScenario({}), narrow=narrow, wide=wide)
    exact = np.where(np.arange(150) < count, large, 1.0)
    native = Pair("out", "out/0", exact, np.where(np.arange(150) < count, ours, exact))
    assert compare_native(Pair("out", "out/0", exact, None), native, scenario).failed == failed


@pytest.mark.parametrize(
    ("large", "count", "overflows", "failed"), [(100.0, 1, 10, False), (100.0, 1, 9, True), (50.0, 1, 10, True), (100.0, 2, 20, True)]
)
def test_in_float16_few_of_the_large_ones_may_overflow_beside_those_of_torch(
    large: float, count: int, overflows: int, failed: bool
) -> None:
    scenario = Scenario(name="a", role=Role.NARROW, noise=NoiseOfScenario({}), narrow="float16")
    index = np.arange(150)
    exact = np.where(index < count, large, np.where(index >= 150 - overflows, 1e6, 1.0))
    theirs = np.where(exact > 65504, np.inf, exact)
    native = Pair("out", "out/0", theirs, np.where(index < count, np.inf, theirs))
    assert compare_native(Pair("out", "out/0", exact, None), native, scenario).failed == failed


@pytest.mark.parametrize(
    ("error", "rough", "failed"),
    [(5e-4, 0.0, False), (2e-2, 0.0, True), (2e-2, 1.2e-2, False), (2e-2, 8e-3, True), (1.0, 1.2e-2, True)],
)
def test_native_gradients_follow_the_kinks_that_rounding_crosses(error: float, rough: float, failed: bool) -> None:
    scenario = _gradient(_Stages(rough))
    exact = np.ones(4)
    pair = Pair("w", "grad/w", exact, (exact + error).astype(np.float32))
    assert compare_native_gradient(pair, exact.astype(np.float32), scenario, 1.0).failed == failed
    # A rewrite that computes in a narrower dtype than torch is not excused by what rounding in torch's dtype does.
    assert compare_native_gradient(pair, exact.astype(np.float32), scenario, 1.0, alike=False).failed


@pytest.mark.parametrize(
    ("error", "elsewhere", "size", "failed"), [(2e-2, 0.12, 10.0, False), (2e-2, 8e-2, 10.0, True), (2e-2, 0.12, 20.0, True)]
)
def test_a_kink_that_no_run_crossed_may_be_as_large_as_one_of_other_inputs(
    error: float, elsewhere: float, size: float, failed: bool
) -> None:
    """Relative to the gradients there."""
    exact = np.ones(4)
    pair = Pair("w", "grad/w", exact, (exact + error).astype(np.float32))
    other = _gradient(_Stages(elsewhere), "b", arrays={"grad/w": size * exact})
    assert compare_native_gradient(pair, exact.astype(np.float32), QUIET, 1.0, others=[other]).failed == failed


def test_a_cast_that_torch_lacks_is_not_excused_by_conditioning() -> None:
    scenario = Scenario(name="a", role=Role.SEED, noise=NoiseOfScenario({"out/0": [1e-14, 1e-14]}))
    exact, native = (Pair("out", "out/0", np.ones(4), np.full(4, 1 + 1e-5)) for _ in range(2))
    assert [compare_native(exact, native, scenario, alike=alike).failed for alike in (True, False)] == [False, True]


def test_outputs_do_not_follow_kinks_by_a_factor() -> None:
    scenario = _gradient(_Stages(1e-2, key="out/0"))
    exact, native = (Pair("out", "out/0", np.ones(4), np.full(4, 1.015)) for _ in range(2))
    assert compare_native(exact, native, scenario).failed


@pytest.mark.parametrize(
    ("noise", "error", "kinks", "failed"),
    [(0.06, 0.3, True, False), (0.06, 0.3, False, True), (0.04, 0.3, True, True), (0.06, 1.5, True, True), (0.6, 1.5, True, False)],
)
def test_at_the_edges_noise_of_torchs_own_is_not_judged(noise: float, error: float, kinks: bool, failed: bool) -> None:
    scenario = Scenario(name="a", role=Role.EDGE, native=("float32",), noise_source=cast(Any, _Stages(noise, key="out/0")))
    exact, native = Pair("out", "out/0", np.ones(4), None), Pair("out", "out/0", np.ones(4), np.full(4, 1 + error))
    assert compare_native(exact, native, scenario, kinks=kinks).failed == failed


@pytest.mark.parametrize(("error", "kinks", "failed"), [(1e-5, True, False), (1e-5, False, True), (1e-4, True, True)])
def test_sums_of_equal_terms_may_drift(error: float, kinks: bool, failed: bool) -> None:
    scenario = Scenario(name="a", role=Role.EDGE, noise=NoiseOfScenario({}), input_elements=2048)
    exact, native = (Pair("out", "out/0", np.array(0.7), np.array(0.7 * (1 + error))) for _ in range(2))
    assert compare_native(exact, native._replace(expected=exact.expected), scenario, kinks=kinks).failed == failed


class Answered:
    """What a candidate gave in float64 in one scenario, and without a compiler, in place of the results of its runs."""

    def __init__(self, *answers: tuple[Scenario, Answer], uncompiled: Answer | None = None) -> None:
        self.given, self.without_compiler = answers, uncompiled

    def uncompiled(self, scenario: Scenario) -> Answer | None:
        """As of results."""
        return self.without_compiler

    def answers(self, *roles: str) -> tuple[tuple[Scenario, Answer], ...]:
        """As of results."""
        return self.given


@pytest.mark.parametrize(
    ("in_float64", "uncompiled", "failed"), [(np.nan, None, False), (0.0, None, True), (0.0, 0.0, True), (0.0, np.nan, False)]
)
def test_nan_of_the_formula_need_not_show_in_float32(in_float64: float, uncompiled: float | None, failed: bool) -> None:
    tree = {"leaf": 0}
    scenario = Scenario(name="a", role=Role.EDGE, noise=NoiseOfScenario({}), tree=tree, arrays={"out/0": np.array([np.nan, 1.0])})
    answer = Answer({"tree": tree}, {"out/0": np.array([in_float64, 1.0])})
    exact = Pair("out", "out/0", np.array([np.nan, 1.0]), None)
    native = Pair("out", "out/0", exact.expected.astype(np.float32), np.array([0.0, 1.0], np.float32))
    assert _loses_nan(exact, native)
    operators = None if uncompiled is None else Answer({"tree": tree}, {"out/0": np.array([uncompiled, 1.0])})
    judged = _nan_as_in_float64(exact, native, cast("Any", Answered((scenario, answer), uncompiled=operators)), scenario)
    assert compare_native(exact, judged, scenario).failed == failed


@pytest.mark.parametrize(("own", "kind", "failed"), [(0.1, "", True), (1.0, DROWNED, False)])
def test_a_native_gradient_of_which_torch_has_nothing_right_is_not_judged(own: float, kind: str, failed: bool) -> None:
    pair = Pair("w", "grad/w", np.ones(4), np.full(4, 9.0, np.float32))
    leaf = compare_native_gradient(pair, np.full(4, 1 + own, np.float32), QUIET, 1.0)
    assert (leaf.kind, leaf.failed) == (kind, failed)


@pytest.mark.parametrize(("theirs", "ours", "failed"), [(0, 1, True), (1, 2, False), (1, 3, True), (2, 4, False), (2, 0, False)])
def test_where_torch_overflows_a_gradient_may_lose_as_many_elements_more(theirs: int, ours: int, failed: bool) -> None:
    """Torch's own losses come first, so that the candidate's are these and others."""
    native, got = (np.where(np.arange(4) < count, np.nan, 1.0).astype(np.float32) for count in (theirs, ours))
    assert compare_native_gradient(Pair("w", "grad/w", np.ones(4), got), native, QUIET, 1.0).failed == failed


@pytest.mark.parametrize(
    ("size", "error", "alike", "failed"),
    [(0.0, 4e-6, True, False), (1e-14, 4e-6, True, False), (0.0, 4e-5, True, True), (0.0, 4e-6, False, True), (1e-6, 4e-6, True, True)],
)
def test_gradients_that_vanish_are_rounding_alone(size: float, error: float, alike: bool, failed: bool) -> None:
    """Beside a largest gradient of 1, as that of a bias before batch norm."""
    exact = np.full(4, size)
    pair = Pair("b", "grad/b", exact, (exact + error).astype(np.float32))
    assert compare_native_gradient(pair, exact.astype(np.float32), QUIET, 1.0, alike=alike).failed == failed


@pytest.mark.parametrize(
    ("error", "sizes", "asked", "failed"),
    [
        (1e-6, (1.0, 1.0), 0, False),
        (2e-2, (1.2e-2, 1.0), 1, False),
        (2e-2, (8e-3, 1.2e-2), 2, False),
        (2e-2, (8e-3, 9e-3), 2, True),
        (2e-2, (None, 1.0), 1, True),
    ],
)
def test_native_noise_is_measured_as_far_as_the_verdict_needs_it(
    error: float, sizes: tuple[float | None, ...], asked: int, failed: bool
) -> None:
    stages = _Stages(*sizes)
    scenario = _gradient(stages)
    exact = np.ones(4)
    pair = Pair("w", "grad/w", exact, (exact + error).astype(np.float32))
    assert compare_native_gradient(pair, exact.astype(np.float32), scenario, 1.0).failed == failed
    assert stages.asked == asked


@pytest.mark.parametrize(
    ("first", "optimised", "failed"), [(1e-4, 1e-7, False), (1e-4, 1e-4, True), (1e-4, None, True), (1e-2, 1e-7, True)]
)
def test_sums_without_optimisations_are_added_up_again(first: float, optimised: float | None, failed: bool) -> None:
    tree, ones = {"leaf": 0}, np.ones(4)
    scenario = Scenario(
        name="a",
        role=Role.GRADIENT,
        gradient=True,
        noise=NoiseOfScenario({}),
        tree=tree,
        native=("float32",),
        arrays={"out/0": ones, "native/out/0": ones.astype(np.float32)},
    )

    class Compiled:
        """A candidate whose error is smaller in an optimised program, in place of the results of its runs."""

        def answers(self, *roles: str, kind: str) -> list[tuple[Scenario, Answer]]:
            """As of results."""
            return [(scenario, self._answer(first))]

        def forgives(self, scenario: Scenario, answer: Answer) -> bool:
            """As of results."""
            return False

        def optimised(self, scenario: Scenario) -> Answer | None:
            """As of results."""
            return None if optimised is None else self._answer(optimised)

        def _answer(self, error: float) -> Answer:
            wrong = np.full(4, 1 + error, np.float32)
            return Answer({"tree": tree, "dtypes": ["float32"], "draws": []}, {"out/0": wrong, "native/out/0": wrong})

    assert [leaf.failed for leaf in native_differences(cast(Any, Compiled()), Role.GRADIENT)] == [failed]
