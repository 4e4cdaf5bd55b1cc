"""Finds the largest batch or length whose training step compiles within the chip's memory, and remedies where a size does not fit.

Each size is exported and compiled. The search doubles until the compiler refuses for memory, then narrows between the last that fits and the
first that does not, to a sixteenth; sizes between are guessed from the peaks of those that fit, which are near enough linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from migrate_agent.tools.portable import shapes
from migrate_agent.tools.portable.ahead import Ahead, Target, Variant, device_count
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.full import split_specs

Axis = Literal["batch", "length"]
CEILING = 2**20
MAX_TRIALS = 32
GRAIN = 16
MEMORY = ("hbm", "memory space", "vmem")
"""Kinds of refusal that a smaller size may avoid."""


@dataclass(frozen=True)
class SizeTrial:
    """One size that was compiled: `peak` bytes of `hbm`; `refused` is the kind of refusal, "" where it compiled, and `text` says more."""

    size: int
    peak: int = 0
    hbm: int = 0
    refused: str = ""
    text: str = ""


@dataclass(frozen=True)
class Fit:
    """The largest size that fits (0: none does), the smallest that was refused (0: none), and all trials in order."""

    axis: Axis
    topology: str
    largest: int
    refused: int
    tried: tuple[SizeTrial, ...]
    stopped: str = ""
    """Why the search ended before it met the limit of memory."""


@dataclass(frozen=True)
class Remedy:
    """One change that was tried where a size did not fit, with its cost."""

    name: str
    cost: Cost

    @property
    def helps(self) -> bool:
        """Whether it fits with it."""
        return self.cost.refused is None


def largest(
    attempt: Callable[[int], SizeTrial], start: int, step: int = 1, ceiling: int = CEILING
) -> tuple[int, int, tuple[SizeTrial, ...], str]:
    """Search the largest multiple of `step` that fits.

    Returns it, the smallest size that was refused (0: none), all trials, and why the search stopped
    early ("" where it did not).
    """
    trials: list[SizeTrial] = []
    low, high, size = 0, 0, max(start // step, 1) * step
    while len(trials) < MAX_TRIALS:
        row = attempt(size)
        trials.append(row)
        # Another error (a table of positions that ends) says nothing about memory, and larger sizes
        # fail too.
        if row.refused and row.refused not in MEMORY:
            return low, high, tuple(trials), f"{size} is refused for another reason ({row.refused}): {row.text}"
        low, high = (low, size) if row.refused else (size, high)
        if not high and size >= ceiling:
            return low, high, tuple(trials), f"{size} fits, and no larger size was tried"
        # Each trial is a compilation of minutes: a sixteenth is close enough for a decision.
        if high and high - low <= max(step, low // GRAIN // step * step):
            return low, high, tuple(trials), ""
        size = _next_size(low, high, trials, step) if high else min(size * 2, ceiling)
    return low, high, tuple(trials), f"{MAX_TRIALS} sizes were compiled"


def _next_size(low: int, high: int, trials: Sequence[SizeTrial], step: int) -> int:
    """The next size to try: where the line through the two largest fitting peaks meets the limit, well inside the gap; else its middle."""
    fitting = sorted((row for row in trials if not row.refused), key=lambda row: row.size)[-2:]
    guess = (low + high) // 2
    if len(fitting) == 2 and fitting[1].peak > fitting[0].peak:
        slope = (fitting[1].peak - fitting[0].peak) / (fitting[1].size - fitting[0].size)
        # The compiler reserves some of the memory; a guess just below the limit is more often
        # accepted.
        guess = int(low + (fitting[1].hbm * 0.97 - fitting[1].peak) / slope)
    margin = max((high - low) // 8, step)
    return (
        min(max(guess, low + margin), high - margin) // step * step if high - low > 2 * margin else (low + high) // 2 // step * step or step
    )


def fit(ahead: Ahead, target: Target, variant: Variant, axis: Axis) -> Fit:
    """The largest batch or length of the training step on this target. Raises `ExtraMissing`, `PortableError`."""
    leaves = ahead.resized(variant)
    count = math.prod(target.axes.get(name, 1) for name in ("data", "fsdp")) if target.axes else device_count(target.topology)
    start = shapes.batch_of(leaves) if axis == "batch" else shapes.length_of(leaves)
    if not start:
        return Fit(axis, target.topology.name, 0, 0, (), f"the example has no {axis}")
    if axis == "length" and shapes.batch_of(leaves) % count:
        variant = replace(variant, batch=-(-shapes.batch_of(leaves) // count) * count)

    def attempt(size: int) -> SizeTrial:
        resized = replace(variant, batch=size) if axis == "batch" else replace(variant, length=size)
        (cost,) = ahead.costs(resized, [target], ["train"])
        refused = cost.refused
        return SizeTrial(size, cost.peak, cost.hbm, refused.kind if refused else "", refused.text if refused else "")

    low, high, trials, stopped = largest(attempt, start, count if axis == "batch" else 1)
    return Fit(axis, target.topology.name, low, high, trials, stopped)


def remedies(ahead: Ahead, target: Target, variant: Variant) -> list[Remedy]:
    """Try bfloat16, recomputed activations, both, and parameters sharded over `fsdp`, each on a variant that did not fit."""
    tried_remedies = [
        Remedy("--dtype bf16", _train_cost(ahead, target, replace(variant, dtype="bf16"))),
        Remedy("jax.checkpoint of each repeated block", _train_cost(ahead, target, replace(variant, remat=True))),
        Remedy("both", _train_cost(ahead, target, replace(variant, dtype="bf16", remat=True))),
    ]
    if (count := device_count(target.topology)) > 1:
        axes = {"fsdp": count}
        (facts,) = ahead.facts([variant])
        if "arguments" in facts.get("train", {}):
            (cost,) = ahead.costs(variant, [Target(target.topology, axes)], ["train"], split_specs(facts["layers"]))
            tried_remedies.append(Remedy(f"--mesh fsdp={count}", cost))
    return tried_remedies


def _train_cost(ahead: Ahead, target: Target, variant: Variant) -> Cost:
    (cost,) = ahead.costs(variant, [target], ["train"])
    return cost
