"""What the original refuses on purpose the candidate refuses as well: jax reads beyond the end of a table, and gives a number, where torch raises."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results

MOST_WORDS = 3


def judge(results: Results) -> Verdict | None:
    """Fail where it gives an answer; any error counts as a refusal. Does not apply where the original refused nothing that was tried."""
    rows = results.expected.refusals
    if not rows or results.looked_only:
        return None
    answers = results.exact.get("refusals", {})
    asked = [row for row in rows if results.port is None or row["name"] in answers]
    if missing := [row for row in asked if row["name"] not in answers]:
        return Verdict("spec", "refusals", "unverified", detail=f"the job ended before it was tried: {missing[0]['words']}")
    answered = {row["place"]: row for row in reversed(asked) if not answers[row["name"]]}
    if answered:
        words = "; ".join(
            f"{row['words']} gives an answer, where the original raises {row['error']}" for row in [*answered.values()][:MOST_WORDS]
        )
        return Verdict("spec", "refusals", "fail", float(len(answered)), 0.0, words)
    return (
        Verdict(
            "spec",
            "refusals",
            "pass",
            0.0,
            0.0,
            f"refused as the original does: {', '.join(row['words'] for row in asked if row['name'] == row['place'])}",
        )
        if asked
        else None
    )


CHECK = Check("spec", "refusals", judge)
