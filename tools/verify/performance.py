"""How long a step takes beside torch: measured where asked for, and a failure only past the configured factor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Timed = Literal["", "eager", "compile"]


@dataclass(frozen=True)
class Performance:
    """`against`: what is timed beside the candidate: nothing, torch's eager mode, or `torch.compile` too (which takes a C++ compiler and time).

    `max_slowdown`: how many times as long as torch's quickest the candidate may take; 0 for no limit.
    """

    against: Timed = ""
    max_slowdown: float = 0.0


def slowdown(seconds: Mapping[str, float]) -> float | None:
    """The candidate's median step in units of torch's quickest; None where either was not timed."""
    theirs = [value for key, value in seconds.items() if key.startswith("torch") and value > 0]
    ours = seconds.get("jax")
    return ours / min(theirs) if ours and theirs else None


NOT_TIMED = Performance()
