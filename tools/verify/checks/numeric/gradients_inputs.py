"""Gradients with respect to all float inputs agree in float64."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import Difference, verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import named_differences
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows; and slopes of the loss, where a custom backward pass draws random numbers."""
    differences = named_differences(results, "input-grad", Role.GRADIENT, Role.GRADIENT_SHAPE, floor=tolerances.FLOOR_GRADIENT_FP64)
    return verdict("numeric", "gradients_inputs", chain(differences, _off_the_slope(results)))


def _off_the_slope(results: Results) -> Iterator[Difference]:
    for scenario, answer in results.answers(Role.GRADIENT):
        slopes = answer.facts.get("slopes")
        if isinstance(slopes, list) and len(slopes) == 2 and all(isinstance(slope, float) for slope in slopes):
            paired, own = slopes
            # Only a backward pass that is a gradient under paired draws is judged: some are no
            # gradients on purpose (straight-through).
            if paired <= tolerances.SLOPE < own:
                problem = f"the backward pass draws other random numbers than the forward pass: the loss's slope is off by {own:.0%}"
                yield Difference(scenario.name, float("inf"), 0.0, problem, "draws", scenario.name)


CHECK = Check("numeric", "gradients_inputs", judge, cost=3)
