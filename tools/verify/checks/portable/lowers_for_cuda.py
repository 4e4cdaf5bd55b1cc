"""A forward pass lowers for CUDA, without the device."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Fail with what the lowering raised."""
    lowering = (results.native.get("compile") or {}).get("lowering")
    if lowering is None:
        return None
    return Verdict("portable", "lowers_for_cuda", "fail" if lowering["cuda"] else "pass", detail=lowering["cuda"])


CHECK = Check("portable", "lowers_for_cuda", judge)
