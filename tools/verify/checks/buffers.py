"""Buffers after a call (running statistics, counters, caches) agree in float64, in training and evaluation mode."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify import limits
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.compare import verdict
from migrate_agent.tools.verify.pairing import named_differences
from migrate_agent.tools.verify.results import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows; integers equal."""
    return verdict("numeric", "buffers", named_differences(results, "state", "seed", "gradient", "shape", floor=limits.FLOOR_FP64))


CHECK = Check("numeric", "buffers", judge, cost=3)
