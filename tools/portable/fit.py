"""What fits: the largest batch or length whose training step compiles within the chip's memory, and what helps where one does not.

Each size is exported and compiled. The search doubles until the compiler refuses for memory, then narrows between the last that fits and the
first that does not, to a sixteenth; sizes between are guessed from the peaks of those that fit, which are near enough linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from migrate_agent.tools.portable import shapes
from migrate_agent.tools.portable.ahead import Ahead, Target, Variant, devices
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.sharding import propose

Axis = Literal["batch", "length"]
CEILING = 2**20
TRIES = 32
GRAIN = 16
MEMORY = ("hbm", "memory space", "vmem")
"""Refusals that a smaller size may mend."""


@dataclass(frozen=True)
class Tried:
    """One size that was compiled: `peak` bytes of `hbm`; `refused` is the kind of refusal, "" where it compiled, and `text` says more."""

    size: int
    peak: int = 0
    hbm: int = 0
    refused: str = ""
    text: str = ""


@dataclass(frozen=True)
class Fit:
    """The largest size that fits (0: none does), the smallest that was refused (0: none), and all that was tried, in order."""

    axis: Axis
    topology: str
    largest: int
    refused: int
    tried: tuple[Tried, ...]
    stopped: str = ""
    """Why the search ended before it met the limit of memory."""


@dataclass(frozen=True)
class Remedy:
    """One thing that was tried where a size did not fit."""

    name: str
    cost: Cost

    @property
    def helps(self) -> bool:
        """Whether it fits with it."""
        return self.cost.refused is None


def largest(attempt: Callable[[int], Tried], start: int, step: int = 1, ceiling: int = CEILING) -> tuple[int, int, tuple[Tried, ...], str]:
    """The largest multiple of `step` that fits, the smallest that was refused, what was tried, and why it stopped early ("" where it did not)."""
    tried: list[Tried] = []
    low, high, size = 0, 0, max(start // step, 1) * step
    while len(tried) < TRIES:
        row = attempt(size)
        tried.append(row)
        if row.refused and row.refused not in MEMORY:
            return low, high, tuple(tried), f"{size} is refused for another reason ({row.refused}): {row.text}"
        low, high = (low, size) if row.refused else (size, high)
        if not high and size >= ceiling:
            return low, high, tuple(tried), f"{size} fits, and no larger size was tried"
        if high and high - low <= max(step, low // GRAIN // step * step):
            return low, high, tuple(tried), ""
        size = _between(low, high, tried, step) if high else min(size * 2, ceiling)
    return low, high, tuple(tried), f"{TRIES} sizes were compiled"


def _between(low: int, high: int, tried: Sequence[Tried], step: int) -> int:
    """Where the memory ends by the line through the two largest that fit, kept well inside the gap; else the middle."""
    fitting = sorted((row for row in tried if not row.refused), key=lambda row: row.size)[-2:]
    guess = (low + high) // 2
    if len(fitting) == 2 and fitting[1].peak > fitting[0].peak:
        slope = (fitting[1].peak - fitting[0].peak) / (fitting[1].size - fitting[0].size)
        guess = int(low + (fitting[1].hbm * 0.97 - fitting[1].peak) / slope)
    margin = max((high - low) // 8, step)
    return (
        min(max(guess, low + margin), high - margin) // step * step if high - low > 2 * margin else (low + high) // 2 // step * step or step
    )


def fit(ahead: Ahead, target: Target, variant: Variant, axis: Axis) -> Fit:
    """The largest batch or length of the training step on this target. Raises `ExtraMissing`, `PortableError`."""
    leaves = ahead.resized(variant)
    count = math.prod(target.axes.get(name, 1) for name in ("data", "fsdp")) if target.axes else devices(target.topology)
    start = shapes.batch_of(leaves) if axis == "batch" else shapes.length_of(leaves)
    if not start:
        return Fit(axis, target.topology.name, 0, 0, (), f"the example has no {axis}")
    if axis == "length" and shapes.batch_of(leaves) % count:
        variant = replace(variant, batch=-(-shapes.batch_of(leaves) // count) * count)

    def attempt(size: int) -> Tried:
        asked = replace(variant, batch=size) if axis == "batch" else replace(variant, length=size)
        (found,) = ahead.costs(asked, [target], ["train"])
        refused = found.refused
        return Tried(size, found.peak, found.hbm, refused.kind if refused else "", refused.text if refused else "")

    low, high, tried, stopped = largest(attempt, start, count if axis == "batch" else 1)
    return Fit(axis, target.topology.name, low, high, tried, stopped)


def remedies(ahead: Ahead, target: Target, variant: Variant) -> list[Remedy]:
    """bfloat16, recomputed activations, both, and parameters split over `fsdp`, each tried on what did not fit."""
    found = [
        Remedy("--dtype bf16", _train(ahead, target, replace(variant, dtype="bf16"))),
        Remedy("jax.checkpoint of each repeated block", _train(ahead, target, replace(variant, remat=True))),
        Remedy("both", _train(ahead, target, replace(variant, dtype="bf16", remat=True))),
    ]
    if (count := devices(target.topology)) > 1:
        axes = {"fsdp": count}
        (facts,) = ahead.facts([variant])
        if "arguments" in facts.get("train", {}):
            proposal = propose(facts["train"]["arguments"], facts["layers"], axes)

            def specs(rows: Any, batch: int, place: Target) -> Any:
                return proposal.specs(rows, batch)

            (cost,) = ahead.costs(variant, [Target(target.topology, axes)], ["train"], specs)
            found.append(Remedy(f"--mesh fsdp={count}", cost))
    return found


def _train(ahead: Ahead, target: Target, variant: Variant) -> Cost:
    (cost,) = ahead.costs(variant, [target], ["train"])
    return cost
