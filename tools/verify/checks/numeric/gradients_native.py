"""Gradients in the dtypes that a user runs the unit in: coarsely, since training curves tell the rest, but of every parameter and input."""

from __future__ import annotations

from collections.abc import Iterator

from migrate_agent.tools.harness.common.compare_arrays import Difference, rms, verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check
from migrate_agent.tools.verify.checks.shared.native import alike_in_width, compare_native_gradient
from migrate_agent.tools.verify.compare.pairs import gradient_pairs, paired, raised_error
from migrate_agent.tools.verify.contract.scenario import Role, Scenario
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """The error against torch's float64 gradient, beside torch's own. Applies where torch gives native gradients."""
    return verdict("numeric", "gradients_native", _differences(results))


def _differences(results: Results) -> Iterator[Difference]:
    compared = [scenario for scenario, _ in results.answers(Role.GRADIENT, kind="native")]
    for scenario, answer in results.answers(Role.GRADIENT, kind="native"):
        if results.forgives(scenario, answer):
            continue
        if answer.error:
            yield raised_error(scenario, answer)
        elif paired(scenario, answer):
            alike = alike_in_width(scenario, answer)
            pairs = gradient_pairs(scenario, answer)
            largest = max((rms(pair.expected) for pair in pairs), default=0.0)
            others = [other for other in compared if other is not scenario and _is_like(other, scenario)]
            for pair in pairs:
                native = scenario.arrays.get(f"native/{pair.key}")
                if native is not None:
                    yield compare_native_gradient(pair, native, scenario, largest, alike=alike, others=others).at(scenario.name, pair.key)


def _is_like(other: Scenario, scenario: Scenario) -> bool:
    return (other.example, other.mode, other.narrow) == (scenario.example, scenario.mode, scenario.narrow)


CHECK = Check("numeric", "gradients_native", judge, cost=NEW_PROCESS)
