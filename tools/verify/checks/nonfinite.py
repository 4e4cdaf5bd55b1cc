"""NaN and infinities in the input spread to the same outputs as in torch, and nowhere else.

Judged in the native dtype: on CPUs, XLA computes grouped convolutions in float64 as dense ones with zeros, and zero times NaN is NaN, so that
there NaN reaches groups that it reaches neither in float32 nor on accelerators.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.check import NEW_PROCESS, Check
from migrate_agent.tools.verify.checks.forward_fp32 import compare_native
from migrate_agent.tools.verify.compare import Difference, verdict
from migrate_agent.tools.verify.pairing import UNPAIRED, applies, output_pairs, paired
from migrate_agent.tools.verify.results import Results


def judge(results: Results) -> Verdict | None:
    """The same places; what stays finite within the limits of float32."""
    if not applies(results, "nonfinite"):
        return None
    return verdict("numeric", "nonfinite", _differences(results), UNPAIRED)


def _differences(results: Results) -> Iterator[Difference]:
    for scenario, answer in results.answers("nonfinite", kind="native"):
        if answer.error:
            yield Difference(scenario.name, float("inf"), 0.0, answer.error)
        elif paired(scenario, answer):
            for exact, native in zip(output_pairs(scenario, answer), output_pairs(scenario, answer, "native/"), strict=True):
                yield compare_native(exact, native, scenario.noise(exact.key)[0])


CHECK = Check("numeric", "nonfinite", judge, cost=NEW_PROCESS)
