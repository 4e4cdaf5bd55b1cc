"""A forward pass lowers for CUDA, without the device."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Fail with what the lowering raised."""
    found = (results.native.get("compile") or {}).get("lowering")
    if found is None:
        return None
    return Verdict("portable", "lowers_for_cuda", "fail" if found["cuda"] else "pass", detail=found["cuda"])


CHECK = Check("portable", "lowers_for_cuda", judge)
