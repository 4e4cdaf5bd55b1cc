"""On which topologies a unit in its real configuration fits: parameters and the optimiser's state are split over all devices (`fsdp`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from migrate_agent.tools.portable.ahead import Ahead, Target, Variant, device_count
from migrate_agent.tools.portable.chips import Topology
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.refusal import Refusal
from migrate_agent.tools.portable.sharding import MeshError, propose


def full_costs(ahead: Ahead, variant: Variant, topologies: Sequence[Topology], programs: Sequence[str]) -> list[Cost]:
    """The programs compiled for each topology, with one row of the batch for each device unless the variant has a batch.

    Raises `ExtraMissing`, `PortableError`.
    """
    costs = []
    for chips in topologies:
        count = device_count(chips)
        sized = replace(variant, batch=variant.batch or count)
        (facts,) = ahead.facts([sized], programs)
        costs += ahead.costs(sized, [Target(chips, {"fsdp": count})], programs, split_specs(facts.get("layers", {})))
    return costs


def split_specs(layers: Mapping[str, Sequence[str]]) -> Callable[[Any, int, Target], Any]:
    """What gives the shardings of a program's arguments, as `Ahead.costs` asks: each parameter's largest axis that divides, over the target's mesh."""

    def specs(rows: Any, batch: int, target: Target) -> Any:
        try:
            return propose(rows, layers, target.axes).specs(rows, batch)
        except MeshError as error:
            return Refusal("batch", "", str(error), "give another --batch")

    return specs


def smallest_fitting(costs: Sequence[Cost]) -> dict[str, str]:
    """Each program → the first topology that it fits on ("": none), in the order of the costs."""
    programs = dict.fromkeys(cost.program for cost in costs)
    return {name: next((cost.topology for cost in costs if cost.program == name and cost.refused is None), "") for name in programs}
