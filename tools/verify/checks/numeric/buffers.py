"""Buffers after a call (running statistics, counters, caches) agree in float64, in training and evaluation mode."""

from __future__ import annotations

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import named_differences
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows; integers equal."""
    return verdict(
        "numeric", "buffers", named_differences(results, "state", Role.SEED, Role.GRADIENT, Role.SHAPE, floor=tolerances.FLOOR_FP64)
    )


CHECK = Check("numeric", "buffers", judge, cost=3)
