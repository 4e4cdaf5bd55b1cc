"""Outputs of the pass that gradients are taken of (in training mode where the unit trains) agree in float64."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import compared
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows."""
    return compared(results, "training_fp64", Role.GRADIENT)


CHECK = Check("numeric", "training_fp64", judge)
