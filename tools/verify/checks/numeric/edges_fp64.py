"""Outputs agree in float64 at the edges: zeros, large, tiny and negative inputs."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import compared
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows."""
    return compared(results, "edges_fp64", Role.EDGE)


CHECK = Check("numeric", "edges_fp64", judge, cost=2)
