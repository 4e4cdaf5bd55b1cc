"""NaN and infinities in the input spread to the same outputs as in torch, and nowhere else.

Judged in the native dtype: on CPUs, XLA computes grouped convolutions in float64 as dense ones with zeros, and zero times NaN is NaN, so that
there NaN reaches groups that it reaches neither in float32 nor on accelerators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrate_agent.tools.harness.common.compare_arrays import verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.checks.shared.native import native_differences
from migrate_agent.tools.verify.checks.shared.outputs import applies
from migrate_agent.tools.verify.compare.pairs import UNPAIRED, paired
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """The same places; what stays finite within the limits of float32."""
    results.of("native")
    if not applies(results, Role.NONFINITE, kind="native"):
        return None
    answers = results.answers(Role.NONFINITE, kind="native")
    # What gives no floats has nothing to compare here.
    unpaired = any(not answer.error and not paired(scenario, answer) for scenario, answer in answers)
    left_out: list[str] = []
    differences = native_differences(results, Role.NONFINITE, left_out=left_out)
    return with_left_out(verdict("numeric", "nonfinite", differences, UNPAIRED if unpaired else ""), left_out)


def with_left_out(judged: Verdict | None, left_out: Sequence[str]) -> Verdict | None:
    """The verdict, which says in which scenarios outputs that differ were not judged."""
    if judged is None or judged.status != "pass" or not left_out:
        return judged
    names = ", ".join(sorted(set(left_out)))
    remark = f"not judged: {len(left_out)} outputs of {names}, where torch's own are undefined or hang on rounding"
    return replace(judged, detail="; ".join(filter(None, (judged.detail, remark))))


CHECK = Check("numeric", "nonfinite", judge, cost=NEW_PROCESS)
