"""What the training steps of a migrated unit take on accelerators: memory, the roofline bound, hours, and the cost at the user's price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from migrate_agent.tools.assess.accelerators import Accelerators
from migrate_agent.tools.assess.calibration import Range
from migrate_agent.tools.assess.training_time import UTILISATION
from migrate_agent.tools.portable.cost import Cost

COMPILER, COUNTED = "TPU compiler", "jaxpr"


@dataclass(frozen=True)
class StepCost:
    """One training step on each of the devices that share its batch. Bytes, operations and seconds are those of one chip or GPU.

    `bound` is what no step is faster than by the published peaks, and `bound_by` says which peak. `hours` are those of all steps: the bound, or
    the operations at the usual part of the peak where that is longer. `refused` is the reason why there are no figures.
    """

    accelerators: str
    count: int
    by: str
    memory: float
    peak: float = 0.0
    flops: float = 0.0
    moved: float = 0.0
    bound: float = 0.0
    bound_by: str = ""
    hours: Range | None = None
    cost: Range | None = None
    refused: str = ""

    @property
    def fits(self) -> bool:
        """Whether the step's memory is there. Counted without a compiler, that is a careful answer: nothing is fused."""
        return not self.refused and self.peak <= self.memory


def compiled_cost(of: Accelerators, cost: Cost, counted: Mapping[str, Any], steps: float, price: float | None) -> StepCost:
    """A step as the TPU compiler sees it; operations as `counted` says, where that is more: the compiler counts the body of a loop once."""
    memory = float(cost.hbm or of.memory)
    if cost.refused is not None:
        return StepCost(of.name, of.count, COMPILER, memory, refused=f"{cost.refused.kind}: {cost.refused.text}".splitlines()[0])
    devices = of.count / max(cost.devices, 1)  # of two devices to a chip, each has half of its figures
    return _timed(
        of, COMPILER, (float(cost.peak), max(cost.flops / devices, counted["flops"] / of.count), cost.bytes / devices), steps, price, memory
    )


def traffic_of(compiled: Sequence[Cost], counted: Mapping[str, Any]) -> dict[str, Any]:
    """The step's traffic, and what it was compiled for: what a compiler moves is far more than the least, so GPUs and TPUs are compared by one figure."""
    for cost in compiled:
        if cost.refused is None:
            split = max(cost.bytes - counted["kept"], 0.0) * max(cost.devices, 1)
            return {"bytes": counted["kept"] + split, "traffic": cost.topology}
    return {}


def counted_cost(of: Accelerators, counted: Mapping[str, Any], batch: int, steps: float, price: float | None) -> StepCost:
    """A step by the counts of its jaxpr (`tools.portable.jaxpr_cost`), its batch split over all devices."""
    if batch % of.count:
        return StepCost(of.name, of.count, COUNTED, of.memory, refused=f"a batch of {batch} cannot be shared by {of.count} devices")
    kept = float(counted["kept"])
    peak = kept + max(counted["peak"] - kept, 0) / of.count
    moved = kept + max(counted["bytes"] - kept, 0.0) / of.count
    by = f"{COUNTED}; bytes as compiled for {counted['traffic']}" if "traffic" in counted else COUNTED
    return _timed(of, by, (peak, counted["flops"] / of.count, moved), steps, price, of.memory)


def _timed(of: Accelerators, by: str, figures: tuple[float, float, float], steps: float, price: float | None, memory: float) -> StepCost:
    peak, flops, moved = figures
    compute, traffic = flops / of.bf16, moved / of.bandwidth
    bound, bound_by = (compute, "compute") if compute >= traffic else (traffic, "memory")
    hours = Range(*(steps * max(bound, compute / share) / 3600 for share in reversed(UTILISATION))) if steps else None
    cost = None if price is None or hours is None else hours.times(price * of.count)
    return StepCost(of.name, of.count, by, memory, peak, flops, moved, bound, bound_by, hours, cost)


def step_lines(costs: Sequence[StepCost], steps: float) -> list[str]:
    """A line for each, and which of those that fit is fastest and cheapest."""
    lines = [_line(cost, steps) for cost in costs]
    fitting = [cost for cost in costs if cost.fits and cost.hours is not None]
    if len(fitting) > 1:
        fastest = min(fitting, key=lambda cost: cost.hours.likely if cost.hours else 0.0)
        lines.append(f"fastest of those that fit: {fastest.accelerators}")
    priced = [cost for cost in fitting if cost.cost is not None]
    if len(priced) > 1:
        cheapest = min(priced, key=lambda cost: cost.cost.likely if cost.cost else 0.0)
        lines.append(f"cheapest of those that fit, of {len(priced)} with a price: {cheapest.accelerators}")
    return lines


def _line(cost: StepCost, steps: float) -> str:
    if cost.refused:
        return f"{cost.accelerators}: no figures: {cost.refused}"
    fit = "fits" if cost.fits else "does NOT fit"
    line = (
        f"{cost.accelerators}: {fit}: {cost.peak / 2**30:.3g} of {cost.memory / 2**30:.3g} GiB; for each of {cost.count} devices "
        f"{cost.flops:.3g} FLOPs and {cost.moved:.3g} bytes a step, at least {cost.bound * 1e3:.3g} ms by {cost.bound_by} ({cost.by})"
    )
    if cost.hours is not None:
        line += f"; {steps:,.0f} steps: {cost.hours.likely:,.3g} hours ({cost.hours.low:,.3g} to {cost.hours.high:,.3g})"
    return line if cost.cost is None else f"{line}; cost {cost.cost.likely:,.4g} ({cost.cost.low:,.4g} to {cost.cost.high:,.4g})"
