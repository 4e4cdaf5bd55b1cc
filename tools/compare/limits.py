"""What two sides may differ by. The defaults are those of the migration guide that the project follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Axis = Literal["auto", "step", "tokens", "epoch"]
EPOCHS = (10.0, 50.0, 100.0)
"""Where losses are compared when epochs are the axis."""
FRACTIONS = (0.1, 0.5, 1.0)
"""Where they are compared on other axes: parts of the range that both sides have."""


@dataclass(frozen=True)
class Limits:
    """Relative differences (0.005 is 0.5 %) except `error_rate`, which is a share of all requests.

    A difference up to the limit is fine, one beyond the `_rollback` limit is a reason to go back, and between them nothing is decided. `noise` is the
    relative standard deviation between runs of one side that differ by their seed; None estimates it from several runs.
    """

    loss: float = 0.005
    loss_rollback: float = 0.01
    slower: float = 0.05
    slower_rollback: float = 0.10
    error_rate: float = 0.001
    latency: float = 0.25
    noise: float | None = None
    by: Axis = "auto"
    at: tuple[float, ...] = ()
    """Places on the axis that are compared; () takes `EPOCHS` or `FRACTIONS`."""
    points: int = 5
    """Places that both sides must have at least."""
    window: float = 0.05
    """A value is the mean over this part of the points, up to its position: one batch says little."""
    metrics: tuple[str, ...] = ()
    """Judge these metrics alone; () judges each that has a known kind."""
