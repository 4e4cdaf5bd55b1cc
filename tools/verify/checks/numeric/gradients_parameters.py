"""Gradients with respect to every parameter agree in float64; a parameter that torch does not reach has zeros."""

from __future__ import annotations

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import named_differences
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows."""
    differences = named_differences(results, "grad", Role.GRADIENT, Role.GRADIENT_SHAPE, floor=tolerances.FLOOR_GRADIENT_FP64)
    return verdict("numeric", "gradients_parameters", differences)


CHECK = Check("numeric", "gradients_parameters", judge, cost=3)
