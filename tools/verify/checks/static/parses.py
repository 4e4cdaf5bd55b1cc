"""The candidate's files exist and are Python."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict:
    """Fail with the line of the first syntax error, or the name of a missing file."""
    errors = [source.error for source in results.sources if source.error]
    return Verdict("static", "parses", "fail" if errors else "pass", detail=errors[0] if errors else f"{len(results.sources)} files")


CHECK = Check("static", "parses", judge, cost=0)
