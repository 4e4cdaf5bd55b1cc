"""Questions about the proposals that were made for a unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from migrate_agent.agent.model.interface import Attempt, Proposer
from migrate_agent.agent.model.splice import fingerprint
from migrate_agent.tools.types import Evidence


def count_by(attempts: Sequence[Attempt], proposer: Proposer) -> int:
    """How many attempts this proposer made."""
    return sum(attempt.by == proposer for attempt in attempts)


def attempt_with_same_code(attempts: Sequence[Attempt], texts: Mapping[str, str]) -> Attempt | None:
    """The earlier attempt with the same code, comments and layout aside."""
    code = fingerprint(texts)
    return next((attempt for attempt in attempts if attempt.texts and fingerprint(attempt.texts) == code), None)


def best_evidence(attempts: Sequence[Attempt]) -> Evidence | None:
    """The evidence that went furthest: the one with most checks passed. Of equals that of a proposal comes before that of a known repair of it, which
    nobody sees, then the latest."""
    judged = [(attempt, attempt.evidence) for attempt in attempts if attempt.evidence is not None]

    def reach(row: tuple[Attempt, Evidence]) -> tuple[int, bool]:
        return sum(verdict.status == "pass" for verdict in row[1].verdicts), row[0].by != "repair"

    best = max(reversed(judged), key=reach, default=None)
    return best[1] if best is not None else None


def breaks_a_method(attempts: Sequence[Attempt], evidence: Evidence) -> bool:
    """Whether a repaired port refuses a call of a method that the latest proposal of another kind answers, which it repairs."""
    judged = (attempt.evidence for attempt in reversed(attempts) if attempt.by != "repair" and attempt.evidence is not None)
    repaired = next(judged, None)
    return repaired is not None and not set(evidence.refused) <= set(repaired.refused)
