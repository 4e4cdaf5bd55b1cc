"""Where torch computes in bfloat16 or float16, the candidate errs at most twice as much, both against torch's float64 answer; dtypes agree."""

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
    """Within twice torch's error and one ulp. Applies where torch's own run, in its own dtypes, uses one of these."""
    if not applies(results, Role.SEED, narrow=True):
        return None
    return verdict("numeric", "forward_bf16", native_differences(results, Role.SEED, narrow=True), UNPAIRED)


CHECK = Check("numeric", "forward_bf16", judge, cost=NEW_PROCESS)
