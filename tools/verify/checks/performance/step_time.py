"""A step takes at most the configured factor of torch's fastest time in the same run. Judged only where a factor is configured."""

from __future__ import annotations

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.performance import measure_steps, slowdown


def judge(results: Results) -> Verdict | None:
    """Fail beyond the factor; `unverified` where a step could not be timed. The times are figures of the evidence in any case."""
    seconds, limit = measure_steps(results), results.performance.max_slowdown
    if not limit or not results.performance.against:
        return None
    factor = slowdown(seconds)
    if factor is None:
        return Verdict("performance", "step_time", "unverified", detail="a step could not be timed")
    # Only a failure tells its numbers: they differ from run to run, and a verdict that passes must not.
    if factor <= limit:
        return Verdict("performance", "step_time", "pass", limit=limit)
    times = ", ".join(f"{name} {value * 1e3:.3g} ms" for name, value in seconds.items())
    return Verdict("performance", "step_time", "fail", factor, limit, times)


CHECK = Check("performance", "step_time", judge, cost=NEW_PROCESS)
