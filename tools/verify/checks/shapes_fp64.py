"""Outputs agree in float64 for batch sizes, lengths and ranks that are not in the example, as far as the original accepts them."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.pairing import compared
from migrate_agent.tools.verify.results import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows. What the candidate says by an error of another rank is a note, no failure."""
    ranks = any(not answer.error for _, answer in results.answers("rank"))
    return compared(results, "shapes_fp64", "shape", *(["rank"] if ranks else []))


CHECK = Check("numeric", "shapes_fp64", judge, cost=2)
