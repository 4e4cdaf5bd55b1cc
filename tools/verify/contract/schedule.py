"""What of a large unit is compared first, and what only while its budget of time lasts.

A small unit has no schedule: all of its scenarios run, in the order in which they are made. Of a large one (`is_large`) those that must run come
first, then the others in the order of `ORDER`. The side of the original decides first, by what its calls take; it has no reason to
cheat. A candidate's process stops at a deadline as well, and the host believes that only where the process ran for as long
(`Results.left_out`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from migrate_agent.tools.harness.common.random_streams import USUAL
from migrate_agent.tools.types import Limits
from migrate_agent.tools.verify.contract.scenario import Request, Role, Scenario

LARGE_ELEMENTS: Final = 1_000_000
LARGE_SECONDS: Final = 0.25
"""A unit is large where its state and inputs have so many elements, or a forward and backward pass in float64 takes torch so long: below
that all scenarios together take a few minutes on both sides, mostly for compilation."""

ORIGINAL_SHARE: Final = 0.25
EXACT_SHARE: Final = 0.45
NATIVE_SHARE: Final = 0.3
"""Shares of the budget after which a job starts nothing more that is optional. The candidate's side compiles, so it has most of it."""

MOST_STEPS: Final = 0.01
"""A second optimiser's curve runs where a forward and backward pass of torch takes less than this share of the budget: it comes to six passes on
each side and in each precision, and finds least (one of 120 wrong pairs of the tests fails in a curve alone)."""

ORDER: Final = (
    Role.SEED,
    Role.EDGE,
    Role.NONFINITE,
    Role.GRADIENT,
    Role.CONFIGURATION,
    Role.DROPPED,
    Role.SHAPE,
    Role.AGAIN,
    Role.AGAIN_TRAINED,
    Role.GRADIENT_EDGE,
    Role.NARROW,
    Role.PART_MODES,
    Role.ATTRIBUTES,
    Role.SECOND,
    Role.LONG,
    Role.RANK,
    Role.CONFIGURATION_DROPPED,
    Role.GRADIENT_SHAPE,
    Role.WORST,
)
"""Optional roles by what they find for their cost, most first: in how many of the wrong pairs of `tests/tools/verify` their checks fail first
(`forward_fp64` 22, `edges_fp64` 10, `configurations_fp64` 7, `training_fp64` and `shapes_fp64` 6, `dropped_fp64` 4, `second_call` and
`gradients_edges` 3, `narrow_inputs` 2, others 1), and how many programs they compile: edges none, sizes one each."""

PASSES: Final = 3.0
"""Budgets that a job of a large unit may take beyond its limit."""

MAX_ERRORS: Final = 2
"""After so many scenarios that raised, a candidate's float64 job ends."""

SEARCH: Final = "the search for the worst input"
"""Among the names of what a candidate's job left out."""

LATE: Final = "the budget of `[verify] seconds` was spent"
FULL: Final = "the inputs and results of the others take the room that a run has on the disk"
"""The reasons of what was left out."""


def is_large(elements: int, seconds: float, least: int = LARGE_ELEMENTS) -> bool:
    """Whether a unit with so many elements in state and inputs, whose forward and backward pass takes torch so long, has a schedule."""
    return elements >= least or seconds >= LARGE_SECONDS


def required(call: Request | Scenario, needed: Iterable[str] = ()) -> bool:
    """Whether a call runs whatever it takes: the first forward pass, and the first one with gradients, of each example; and those `needed` by name."""
    first = call.state.endswith("-s0") and call.role in (Role.SEED, Role.GRADIENT) and call.drawing == USUAL
    return first or call.name in needed


def in_order(calls: Sequence[Request], needed: Sequence[str]) -> list[Request]:
    """The calls that are required, then the others by `ORDER`; of one role as they were."""
    return sorted(calls, key=lambda call: (not required(call, needed), 0 if required(call, needed) else ORDER.index(call.role)))


def longer(limits: Limits, budget: float) -> Limits:
    """The limits of a job that may be a large unit's.

    What must run takes about fourteen forward and backward passes and as many natively, so that one whose passes take a tenth of the budget ends
    within three budgets. Its state, gradients and momentum stand in memory beside each other, so it may have a third more of that.
    """
    if not budget:
        return limits
    return replace(limits, seconds=limits.seconds + PASSES * budget, memory_bytes=limits.memory_bytes * 4 // 3)


@dataclass
class Deadline:
    """The end of what is optional in a job. Of a large unit: `seconds` after it began; never passed where `seconds` is 0, or the unit is `small`;
    with `large_from` elements it is not. Of any unit: when the files fill the `room`."""

    seconds: float = 0.0
    small: bool = False
    large_from: int = LARGE_ELEMENTS
    began: float = field(default_factory=time.monotonic)
    longest: float = 0.0
    """Seconds of the longest optional call so far: a further one is not begun where it may end so much later."""
    room: int = 0
    """Bytes that may be written, 0 for any number."""
    written: int = 0
    largest: int = 0
    """Bytes of the largest call so far: a further one is not begun where it may not fit."""

    @property
    def passed(self) -> bool:
        """Whether nothing more is begun."""
        return bool(self.seconds) and not self.small and time.monotonic() - self.began + self.longest / 2 > self.seconds

    @property
    def full(self) -> bool:
        """Whether nothing more is written, large or small."""
        return bool(self.room) and self.written + self.largest > self.room

    def wrote(self, count: int) -> None:
        """Take in that a call wrote so many bytes."""
        self.written, self.largest = self.written + count, max(self.largest, count)

    def note(self, since: float) -> None:
        """Take in that an optional call began at `since` (`time.monotonic`) and has ended."""
        self.longest = max(self.longest, time.monotonic() - since)
