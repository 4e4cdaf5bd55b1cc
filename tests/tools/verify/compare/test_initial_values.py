"""Distributions of initial values."""

from __future__ import annotations

import numpy as np
import pytest

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.verify.compare.initial_values import Sample, copies, distribution_problem


@pytest.mark.parametrize(("width", "same"), [(1.0, True), (1.1, False)])
def test_initial_values_of_another_width_are_told(width: float, same: bool) -> None:
    draw = np.random.default_rng(0).standard_normal
    problem, p = distribution_problem(Sample(draw((64, 128))), Sample(width * draw((64, 128))), tolerances.INIT_ALPHA)
    assert (not problem) == same == (p > tolerances.INIT_ALPHA)


def _outer(rows: int, columns: int, constructions: int, seed: int, width: float = 1.0) -> Sample:
    """Outer products of draws, as factorised noise is."""
    draw = np.random.default_rng(seed).standard_normal
    left, right = (np.sign(value) * np.sqrt(np.abs(value)) for value in (draw((constructions, rows)), draw((constructions, columns))))
    return Sample(width * np.einsum("ci,cj->cij", left, right).reshape(constructions, -1))


@pytest.mark.parametrize(("width", "same"), [(1.0, True), (1.3, False)])
@pytest.mark.parametrize(("rows", "columns"), [(64, 16), (40, 40)])
def test_elements_that_depend_on_each_other_count_for_less(rows: int, columns: int, width: float, same: bool) -> None:
    problems = [
        distribution_problem(_outer(rows, columns, 64, seed), _outer(rows, columns, 64, 100 + seed, width), tolerances.INIT_ALPHA)[0]
        for seed in range(8)
    ]
    assert all((not problem) == same for problem in problems)


def test_independent_elements_count_in_full() -> None:
    effects = [Sample(np.random.default_rng(seed).standard_normal((64, 500))).effect for seed in range(40)]
    assert sum(effect > 1 for effect in effects) <= 2
    assert _outer(32, 32, 64, 0).effect > 4


def test_one_key_is_told_in_another_order_and_scale() -> None:
    rng = np.random.default_rng(0)
    first, other = rng.normal(size=(8, 30)), rng.normal(size=(8, 30))
    shuffled = 3 * first[:, rng.permutation(30)]
    assert copies({"first": first, "other": other}) == set()
    assert copies({"first": first, "other": other, "shuffled": shuffled}) == {frozenset({"first", "shuffled"})}
    assert copies({"first": first, "scaled": 2 * first + 1}) == {frozenset({"first", "scaled"})}
