"""Comparison of two arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import compare, equal
from migrate_agent.tools.verify.contract.scenario import UNKNOWN

NOTHING = (0.0, 0.0)


COMPARISONS: list[tuple[str, Any, Any, tuple[float, float], bool]] = [
    ("equal", [1.0, 2.0], [1.0, 2.0], NOTHING, False),
    ("rounding", [1.0, 2.0], [1.0 + 1e-15, 2.0], NOTHING, False),
    ("an epsilon", [1.0, 2.0], [1.0 + 1e-7, 2.0], NOTHING, True),
    ("ill-conditioned", [1.0, 2.0], [1.0 + 1e-7, 2.0], (1e-8, 1e-8), False),
    ("wrong however ill-conditioned", [1.0, 2.0], [1.1, 2.0], (1.0, 1.0), True),
    ("one small element among large ones", [1e6, 1.0], [1e6, 1.5], NOTHING, True),
    ("shape", [1.0, 2.0], [[1.0, 2.0]], NOTHING, True),
    ("NaN on both sides", [np.nan, 2.0], [np.nan, 2.0], NOTHING, False),
    ("NaN on one side", [1.0, 2.0], [np.nan, 2.0], NOTHING, True),
    ("sign of infinity", [np.inf, 2.0], [-np.inf, 2.0], NOTHING, True),
    ("integers", [1, 2], [1, 3], NOTHING, True),
    ("zeros", [0.0, 0.0], [0.0, 0.0], NOTHING, False),
    ("not zero", [0.0, 0.0], [0.0, 1e-3], NOTHING, True),
    ("zero with noise that is not known", [0.0, 0.0], [0.0, 1.0], UNKNOWN, True),
    ("noise that is not known", [1.0, 2.0], [1.0 + 1e-7, 2.0], UNKNOWN, False),
    ("wrong whatever the noise", [1.0, 2.0], [1.1, 2.0], UNKNOWN, True),
    ("empty", [], [], NOTHING, False),
]


@pytest.mark.parametrize(("expected", "got", "noise", "failed"), [row[1:] for row in COMPARISONS], ids=[row[0] for row in COMPARISONS])
def test_comparison(expected: Any, got: Any, noise: tuple[float, float], failed: bool) -> None:
    assert compare("x", np.array(expected), np.array(got), lambda: noise, tolerances.FLOOR_FP64).failed == failed


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, 3.0], False),
        ([np.nan, 2.0], [np.nan, 2.0], True),
        ([np.nan, 2.0], [2.0, np.nan], False),
        ([np.nan, 2.0], [np.nan, 3.0], False),
        ([1.0, 2.0], [[1.0, 2.0]], False),
        ([1, 2], [1, 2], True),
        ([True], [False], False),
        ([], [], True),
    ],
)
def test_equal_arrays_have_equal_numbers_and_nan_at_the_same_places(one: Any, other: Any, same: bool) -> None:
    assert equal(np.array(one), np.array(other)) == same
