"""Outputs agree in float64 for batch sizes and lengths that are not in the example, as far as the original accepts them."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.pairing import compared
from migrate_agent.tools.verify.results import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows."""
    return compared(results, "shapes_fp64", "shape")


CHECK = Check("numeric", "shapes_fp64", judge, cost=2)
