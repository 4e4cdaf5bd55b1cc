"""What a step may be compiled for once more, and what not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from migrate_agent.tools.programs.judge.candidate import compiled_for


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.zeros(3), np.ones(3), True),
        (np.zeros(3), np.zeros(4), False),
        (np.zeros(3), np.zeros(3, np.float32), False),
        (True, False, False),
        ("train", "test", False),
        (3, 4, True),
        (0.1, 0.2, True),
        (1, True, False),
    ],
)
def test_a_number_of_the_step_is_no_reason(one: Any, other: Any, same: bool) -> None:
    assert (compiled_for(one) == compiled_for(other)) is same
