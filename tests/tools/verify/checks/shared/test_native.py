"""Comparison of native outputs."""

from __future__ import annotations

import numpy as np
import pytest

from migrate_agent.tools.harness.common.compare_arrays import quiet
from migrate_agent.tools.verify.checks.shared.native import _of_infinities, compare_native
from migrate_agent.tools.verify.compare.pairs import Pair
from migrate_agent.tools.verify.contract.scenario import UNKNOWN


@pytest.mark.parametrize(
    ("theirs", "ours", "failed"),
    [(np.nan, np.inf, False), (np.nan, 1.0, True), (np.inf, np.nan, False), (1.0, np.inf, True), (1.0, 2.0, False)],
)
def test_where_infinities_make_nan_only_what_is_finite_counts(theirs: float, ours: float, failed: bool) -> None:
    pair = _of_infinities(Pair("out", "out/0", np.array(theirs, np.float32), np.array(ours, np.float32)))
    assert compare_native(pair, pair, quiet, "float32").failed == failed


@pytest.mark.parametrize(("ours", "failed"), [(1.0 + 1e-4, False), (1.1, True)])
def test_native_errors_are_judged_where_the_noise_is_not_known(ours: float, failed: bool) -> None:
    exact, native = (Pair("out", "out/0", np.array([1.0]), np.array([ours])) for _ in range(2))
    assert compare_native(exact, native, lambda: UNKNOWN, "float32").failed == failed
