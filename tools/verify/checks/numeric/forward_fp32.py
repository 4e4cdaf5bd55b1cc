"""In float32, as users run it, the candidate errs at most twice as much as torch does, both against torch's float64 answer; dtypes agree."""

from __future__ import annotations

from migrate_agent.tools.harness.common.compare_arrays import verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.checks.shared.native import native_differences
from migrate_agent.tools.verify.checks.shared.outputs import applies
from migrate_agent.tools.verify.compare.pairs import UNPAIRED
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within twice torch's error and the floors of `tolerances`. Applies where torch computes in nothing narrower."""
    if not applies(results, Role.SEED, narrow=False):
        return None
    return verdict("numeric", "forward_fp32", native_differences(results, Role.SEED, Role.SHAPE, Role.LONG, narrow=False), UNPAIRED)


CHECK = Check("numeric", "forward_fp32", judge, cost=NEW_PROCESS)
