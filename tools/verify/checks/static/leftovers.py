"""Nothing of torch is left in the candidate, on lines that no call reaches either: no write into an array, no method that arrays lack."""

from __future__ import annotations

from migrate_agent.tools.leftovers import find
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.parsed_source import failed_at


def judge(results: Results) -> Verdict:
    """Fail for the first place that raises an error once it runs, or that names what is not there."""
    texts = {source.path: source.text for source in results.sources if not source.error}
    # What imports torch is refused by the check `imports`.
    return failed_at("leftovers", [str(leftover) for leftover in find(texts, imports=False)])


CHECK = Check("static", "leftovers", judge, cost=2)
