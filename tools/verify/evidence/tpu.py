"""Compiling ahead of time for TPUs: done where the configuration names a topology, on the first example that ran."""

from __future__ import annotations

import math
from collections.abc import Sequence

from migrate_agent.tools.portable import shapes
from migrate_agent.tools.portable.ahead import Ahead, Target, Variant, device_count
from migrate_agent.tools.portable.chips import topology
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.verify.evidence.candidate import Results


def compile_programs(results: Results) -> Sequence[Cost]:
    """The costs, or refusals, of both programs for each topology, kept in `results.tpu_costs`. Raises `ExtraMissing`, `PortableError`."""
    settings, index = results.portable, results.expected.examples[0]["index"]
    topologies = [topology(text) for text in settings.topologies]
    ahead = Ahead(
        results.unit,
        results.examples[index],
        results.translated[index],
        results.inventory,
        results.candidate_root,
        results.sandbox,
        results.job_limits,
        results.original_root,
        results.side,
    )
    with ahead:
        # One batch for all topologies, which each of them can share among its devices.
        share = math.lcm(*(device_count(grid) for grid in topologies))
        batch = settings.batch or shapes.batch_of(ahead.leaves)
        variant = Variant(-(-batch // share) * share, 0, settings.dtype)
        results.tpu_costs = ahead.costs(variant, [Target(grid) for grid in topologies])
    return results.tpu_costs
