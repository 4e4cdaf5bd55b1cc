"""Outputs in evaluation mode agree in float64 for randomised parameters, buffers and inputs."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import compared
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows."""
    return compared(results, "forward_fp64", Role.SEED)


CHECK = Check("numeric", "forward_fp64", judge)
