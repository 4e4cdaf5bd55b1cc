"""Every line of the port was run in a call that was compared, or refuses what was not tried; and nothing of the original was left out."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.reach import judged

MOST = 6
"""Places that the detail names."""


def judge(results: Results) -> Verdict:
    """Unverified with the lines that no compared call ran; with `[run] keep_unreached`, told and passed."""
    reach = judged(results)
    missed = len(reach.missed)
    if not missed:
        return Verdict("reach", "reach", "pass", 0.0, 0.0, str(reach))
    more = f"; and {missed - MOST} more places" if missed > MOST else ""
    told = f"{reach}; no compared call runs {'; '.join(reach.missed[:MOST])}{more}"
    if results.unreached == "keep":
        return Verdict("reach", "reach", "pass", float(missed), detail=f"{told} (kept, as [run] keep_unreached asks)")
    return Verdict("reach", "reach", "unverified", float(missed), 0.0, told)


CHECK = Check("reach", "reach", judge)
