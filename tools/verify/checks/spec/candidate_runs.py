"""The candidate can be imported and constructed, and its process ends well."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.contract.scenario import CandidateFailed
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict:
    """Fail with the error, or with how the process ended."""
    try:
        results.of("exact")
    except CandidateFailed as error:
        return Verdict("spec", "candidate_runs", "fail", detail=str(error), error="raised", raised=error.raised)
    return Verdict("spec", "candidate_runs", "pass")


CHECK = Check("spec", "candidate_runs", judge, cost=0)
