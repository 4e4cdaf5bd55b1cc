"""The median time of a step, with the same rule on both sides. Standard library only."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

WARM_UP: Final = 2
LEAST: Final = 5
MOST: Final = 50
BUDGET_SECONDS: Final = 3.0


def median_seconds(step: Callable[[], object]) -> float:
    """Median of up to `MOST` calls, as many as fit the budget but at least `LEAST`, after some that do not count."""
    for _ in range(WARM_UP):
        step()
    taken: list[float] = []
    while len(taken) < LEAST or (len(taken) < MOST and sum(taken) < BUDGET_SECONDS):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
