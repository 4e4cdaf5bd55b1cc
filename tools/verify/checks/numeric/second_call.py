"""A second call of the same module agrees in float64, its outputs and its buffers: what the first one left behind is the same on both sides."""

from __future__ import annotations

from itertools import chain

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import verdict
from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.outputs import applies, named_differences, output_differences
from migrate_agent.tools.verify.compare.pairs import UNPAIRED
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.evidence.candidate import Results


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows, in evaluation and training mode, and in evaluation mode after training mode."""
    if not applies(results, Role.AGAIN):
        return None
    state = named_differences(results, "state", Role.AGAIN, Role.AGAIN_TRAINED, floor=tolerances.FLOOR_FP64)
    return verdict("numeric", "second_call", chain(output_differences(results, Role.AGAIN, Role.AGAIN_TRAINED), state), UNPAIRED)


CHECK = Check("numeric", "second_call", judge, cost=4)
