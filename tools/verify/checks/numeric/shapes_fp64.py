"""Outputs agree in float64 for batch sizes, lengths and ranks that are not in the example, as far as the original accepts them."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import compared
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows.

    Where the candidate refuses another rank, or on purpose a size beyond numbers of the code, that is a
    note and no failure.
    """
    accepted = [role for role in (Role.RANK, Role.LONG) if any(not results.forgives(*answered) for answered in results.answers(role))]
    return compared(results, "shapes_fp64", Role.SHAPE, *accepted)


CHECK = Check("numeric", "shapes_fp64", judge, cost=2)
