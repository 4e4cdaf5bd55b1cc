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
    """The median seconds of a call: of `LEAST` to `MOST` calls within the budget, after `WARM_UP` calls that do not count."""
    for _ in range(WARM_UP):
        step()
    seconds: list[float] = []
    while len(seconds) < LEAST or (len(seconds) < MOST and sum(seconds) < BUDGET_SECONDS):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
