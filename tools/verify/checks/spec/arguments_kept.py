"""The candidate leaves lists and dictionaries among its arguments as they are, where the original does."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict:
    """Fail for the first scenario in which only the candidate changes the containers among its arguments."""
    for scenario, answer in results.answers(Role.SEED, Role.GRADIENT):
        if not answer.error and answer.facts.get("rearranged") and not scenario.rearranged:
            detail = f"{scenario.name}: it changes the lists or dictionaries that it is given"
            return Verdict("numeric", "arguments_kept", "fail", detail=detail)
    return Verdict("numeric", "arguments_kept", "pass")


CHECK = Check("numeric", "arguments_kept", judge, cost=0)
