"""Buffers after a call (running statistics, counters, caches) agree in float64, in training and evaluation mode; so do the arrays in plain attributes
of the same name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import named_differences
from migrate_agent.tools.verify.compare.pairs import Pair, judged, paired
from migrate_agent.tools.verify.contract.scenario import HELD, Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows; integers equal."""
    buffers = named_differences(results, "state", Role.SEED, Role.GRADIENT, Role.SHAPE, floor=tolerances.FLOOR_FP64)
    return verdict("numeric", "buffers", chain(buffers, held_differences(results)))


def held_differences(results: Results) -> Iterator[Difference]:
    """Errors of what plain attributes hold after a call, where the candidate has one of that name. What the call did not set may have another form."""
    for scenario, answer in results.answers(Role.SEED, Role.GRADIENT):
        if answer.error or not paired(scenario, answer):
            continue
        for key, expected in scenario.arrays.items():
            kind, _, path = key.partition("/")
            actual = answer.arrays.get(f"{HELD[0]}{path}") if f"{kind}/" in HELD else None
            if actual is not None and (f"{kind}/" == HELD[0] or (actual.shape, actual.dtype.kind) == (expected.shape, expected.dtype.kind)):
                yield judged(
                    scenario, Pair(f"{scenario.name} attribute {path}", key, expected, actual, scenario.name), tolerances.FLOOR_FP64
                )


CHECK = Check("numeric", "buffers", judge, cost=3)
