"""In bfloat16 and float16 the candidate errs about as little as torch does, gives the same dtypes, and computes in float32 what torch does.

A cast that is left out, or a table in float32, shows only where the input is narrower. XLA may compute in float32 on CPUs what the program asks
for in bfloat16, so that a softmax without its cast has the same values here and others on accelerators: the program itself is looked at too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from migrate_agent.tools.harness.common.compare_arrays import Difference, verdict
from migrate_agent.tools.harness.common.operator_kinds import PRODUCTS
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.checks.shared.native import native_differences
from migrate_agent.tools.verify.checks.shared.outputs import applies
from migrate_agent.tools.verify.compare.pairs import UNPAIRED
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within twice torch's own error. Applies where the original or the candidate looks at dtypes."""
    results.of("native")
    # What a port has no variable for cannot be cast, and a stub of what no example reached may refuse, of which notes tell: nothing is left to judge.
    unforgiven = (answered for answered in results.answers(Role.NARROW, kind="native") if not results.forgives(*answered))
    if not applies(results, Role.NARROW, kind="native") or not any(True for _ in unforgiven):
        return None
    return verdict("numeric", "narrow_inputs", chain(native_differences(results, Role.NARROW), _narrower(results)), UNPAIRED)


def _narrower(results: Results) -> Iterator[Difference]:
    for scenario, answer in results.answers(Role.NARROW, kind="native"):
        kinds = set(scenario.wide).intersection(map(str, answer.facts.get("kinds", ())))
        width, computed = scenario.narrow or "less than float32", sorted(kinds - {PRODUCTS})
        problems = [f"it computes {', '.join(computed)} in {width}, torch in float32"] if computed else []
        problems += [f"it multiplies what it rounded to {width}, torch what it has in float32"] if PRODUCTS in kinds else []
        for problem in problems:
            yield Difference(scenario.name, float("inf"), 0.0, problem, "dtype", scenario.name)


CHECK = Check("numeric", "narrow_inputs", judge, cost=NEW_PROCESS)
