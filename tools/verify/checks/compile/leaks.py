"""No tracer leaves the call that made it (`jax.checking_leaks`)."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Fail with jax's own message."""
    facts = results.native.get("compile") or {}
    # Without a scenario to trace there is nothing to judge.
    if "leak" not in facts:
        return None
    return Verdict("compile", "leaks", "fail" if facts["leak"] else "pass", detail=facts["leak"])


CHECK = Check("compile", "leaks", judge)
