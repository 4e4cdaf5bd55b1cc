"""Distributions of initial values."""

from __future__ import annotations

import numpy as np
import pytest

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.verify.compare.initial_values import Sample, distribution_problem


@pytest.mark.parametrize(("width", "same"), [(1.0, True), (1.1, False)])
def test_initial_values_of_another_width_are_told(width: float, same: bool) -> None:
    draw = np.random.default_rng(0).standard_normal
    problem, p = distribution_problem(Sample(draw((64, 128))), Sample(width * draw((64, 128))), tolerances.INIT_ALPHA)
    assert (not problem) == same == (p > tolerances.INIT_ALPHA)
