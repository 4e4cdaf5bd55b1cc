"""How long a training takes on accelerators of which the published figures are known, whether its state fits, and what it costs at the user's price.

The law is 6 × parameters × tokens operations for a dense transformer (Kaplan et al. 2020, https://arxiv.org/abs/2001.08361, section 2.1), over the peak in
bfloat16 and the part of it that is reached; 30 to 50 % is the range of the migration guide.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrate_agent.tools.assess.accelerators import Accelerators
from migrate_agent.tools.assess.calibration import Range

OPERATIONS = 6
"""For each parameter and token: forward and backward pass."""
UTILISATION = Range(0.3, 0.4, 0.5)
STATE_BYTES = 16
"""For each parameter: weight, gradient and two moments of Adam in float32. Activations come on top."""


@dataclass(frozen=True)
class TrainingTime:
    """`hours` of the whole topology, `cost` in the currency of the price; `state` and `memory` are bytes of all chips together."""

    topology: str
    chips: int
    operations: float
    hours: Range
    cost: Range | None
    state: float
    memory: float

    @property
    def fits(self) -> bool:
        """Whether weights, gradients and moments fit, split over all chips. That says nothing about activations."""
        return self.state <= self.memory


def training_time(
    parameters: float, tokens: float, on: Accelerators, price: float | None, utilisation: Range = UTILISATION
) -> TrainingTime:
    """`price` is that of one chip or GPU for one hour."""
    operations = OPERATIONS * parameters * tokens
    ideal = operations / (on.bf16 * on.count) / 3600
    hours = Range(ideal / utilisation.high, ideal / utilisation.likely, ideal / utilisation.low)
    cost = None if price is None else hours.times(price * on.count)
    return TrainingTime(on.name, on.count, operations, hours, cost, STATE_BYTES * parameters, on.memory * on.count)


def training_line(time: TrainingTime) -> str:
    """One line for people."""
    low, likely, high = time.hours
    fit = "fits" if time.fits else "does NOT fit"
    line = (
        f"{time.topology}: {likely:,.0f} hours ({low:,.0f} to {high:,.0f}) for {time.operations:.2g} operations; the training's state, "
        f"{time.state / 2**30:,.0f} GiB, {fit} into {time.memory / 2**30:,.0f} GiB, activations aside"
    )
    return line if time.cost is None else f"{line}; cost {time.cost.likely:,.0f} ({time.cost.low:,.0f} to {time.cost.high:,.0f})"
