"""A state that goes into the candidate comes out unchanged, bit by bit."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Fail with the names that changed. Applies where the state could be loaded."""
    changed = results.exact["spec"].get("changed")
    # A state that does not load is the failure of `state_names`.
    if changed is None:
        return None
    return Verdict("spec", "round_trip", "fail" if changed else "pass", float(len(changed)), 0.0, ", ".join(changed[:5]))


CHECK = Check("spec", "round_trip", judge, cost=2)
