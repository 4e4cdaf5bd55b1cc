"""What the comparison of one value says, and the decision that a difference calls for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Decision = Literal["go", "roll back", "cannot say"]


@dataclass(frozen=True)
class Finding:
    """One value of both sides. `change` is relative to A, positive where it is worse for one-sided kinds; `noise` is the 95 % margin around it.

    `limit` and `rollback` are those that `change` was held against; of an error rate they are shares. `detail` is a sentence for people.
    """

    metric: str
    kind: str
    decision: Decision
    detail: str
    at: str = ""
    a: float | None = None
    b: float | None = None
    change: float | None = None
    noise: float | None = None
    limit: float | None = None
    rollback: float | None = None


def decide(change: float, noise: float | None, limit: float, rollback: float) -> tuple[Decision, str]:
    """The decision about a relative change that is bad where it is positive, and why.

    Beyond `rollback`, the noise taken off, it is a reason to go back. Up to `limit`, or within the noise, it is fine, as long as the noise is small
    enough to show a change that would be one. Between them nothing is decided.
    """
    within = noise or 0.0
    if change - within > rollback:
        return "roll back", f"{percent(change)} is beyond {percent(rollback)}{_beside(noise)}"
    if within > rollback:
        return "cannot say", f"the noise between runs is too large: ±{percent(within)} hides a change of {percent(rollback)}; add runs"
    if change <= limit:
        return "go", f"within {percent(limit)}"
    if change <= within:
        return "go", f"within the noise between runs, ±{percent(within)}"
    more = "" if noise else "; give several runs a side, or --noise, so that the noise between seeds is known"
    return "cannot say", f"{percent(change)} is beyond {percent(limit)} and not surely beyond {percent(rollback)}{_beside(noise)}{more}"


def percent(value: float) -> str:
    """A relative value for people."""
    return f"{100 * value:.3g} %"


def _beside(noise: float | None) -> str:
    return f" (noise ±{percent(noise)})" if noise else ""
