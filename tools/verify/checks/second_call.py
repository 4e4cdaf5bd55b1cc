"""A second call of the same module agrees in float64, its outputs and its buffers: what the first one left behind is the same on both sides."""

from __future__ import annotations

from itertools import chain

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify import limits
from migrate_agent.tools.verify.check import Check
from migrate_agent.tools.verify.compare import verdict
from migrate_agent.tools.verify.pairing import UNPAIRED, applies, named_differences, output_differences
from migrate_agent.tools.verify.results import Results
from migrate_agent.tools.verify.streams import TRAINED


def judge(results: Results) -> Verdict | None:
    """Within the limit that the unit's conditioning allows, in evaluation and training mode, and in evaluation mode after training mode."""
    if not applies(results, "again"):
        return None
    state = named_differences(results, "state", "again", TRAINED, floor=limits.FLOOR_FP64)
    return verdict("numeric", "second_call", chain(output_differences(results, "again", TRAINED), state), UNPAIRED)


CHECK = Check("numeric", "second_call", judge, cost=4)
