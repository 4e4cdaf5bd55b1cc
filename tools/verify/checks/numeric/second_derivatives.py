"""Gradients of the squared length of the gradients agree in float64, where the port defines or stops gradients of its own.

A backward pass may be right as far as it goes and constant to the next one: a gradient penalty then has no gradient, or a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import applies, named_differences
from migrate_agent.tools.verify.compare.pairs import UNPAIRED, raised_error
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the conditioning allows. Applies where the candidate was asked."""
    if not applies(results, Role.SECOND):
        return None
    kinds = (named_differences(results, kind, Role.SECOND, floor=tolerances.FLOOR_GRADIENT_FP64) for kind in ("grad", "input-grad"))
    return verdict("numeric", "second_derivatives", chain(_raised(results), *kinds), UNPAIRED)


def _raised(results: Results) -> Iterator[Difference]:
    return (raised_error(scenario, answer) for scenario, answer in results.answers(Role.SECOND) if answer.error)


CHECK = Check("numeric", "second_derivatives", judge, cost=4)
