"""The candidate can be imported and constructed, and its process ends well."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.contract.scenario import CandidateFailed
from migrate_agent.tools.verify.evidence.candidate import Results

MOST_NAMES = 4


def judge(results: Results) -> Verdict:
    """Fail with the error, or with how the process ended; `unverified` where its process left out of a large unit what it must not."""
    try:
        results.of("exact")
    except CandidateFailed as error:
        return Verdict("spec", "candidate_runs", "fail", detail=str(error), error="raised", raised=error.raised)
    if missing := results.unanswered():
        return Verdict("spec", "candidate_runs", "unverified", float(len(missing)), 0.0, f"no answer to {', '.join(missing[:MOST_NAMES])}")
    return Verdict("spec", "candidate_runs", "pass")


CHECK = Check("spec", "candidate_runs", judge, cost=0)
