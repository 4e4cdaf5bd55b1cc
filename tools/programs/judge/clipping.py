"""Whether the bounds of clipping matter in what is compared: runs whose gradients lie on one side of a bound say nothing of it.

A clip that never changes anything may be left out unseen, and one that always does may be put in place of by a division. So both programs run once
more with all gradients multiplied by a number that brings them to the other side of the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from migrate_agent.tools.programs.judge.compare import Pair, Ran, losses, parameters, printed_numbers, step_count, verdict
from migrate_agent.tools.types import Verdict

UNDER, OVER = 0.9, 3.0
"""A bound matters where some gradients are at most `UNDER` of it, and some at least `OVER` times it (and times the losses of one update: of
gradients that add up, each by itself would be clipped too)."""
AIM_UNDER, AIM_OVER = 0.3, 10.0
"""Where the median is brought to in a run with scaled gradients."""
MOST_RUNS = 4


@dataclass(frozen=True)
class Scaled:
    """A run of the original with all gradients multiplied by `scale`, and the same with weights moved by one rounding."""

    scale: float
    original: Ran
    moved: Ran


@dataclass(frozen=True)
class Clipping:
    """Runs with scaled gradients, and the places of clips (`train.py:12`) whose bound does not matter in any run."""

    runs: tuple[Scaled, ...] = ()
    idle: tuple[str, ...] = ()


def clipping_runs(plain: Ran, run: Callable[[float], tuple[Ran, Ran] | None]) -> Clipping:
    """The runs that it takes for each bound to matter. `run` gives two runs with scaled gradients, or `None` where the program does not run so."""
    runs: list[Scaled] = []
    for _ in range(MOST_RUNS):
        scale = next(_scales([plain, *(one.original for one in runs)]), None)
        pair = run(scale) if scale is not None else None
        if scale is None or pair is None:
            break
        runs.append(Scaled(scale, *pair))
    return Clipping(tuple(runs), tuple(idle_sites([plain, *(one.original for one in runs)])))


def _scales(runs: Sequence[Ran]) -> Iterator[float]:
    """What gradients are to be multiplied by: for the first bound that does not matter yet."""
    folded = _losses_an_update(runs[0])
    for site in idle_sites(runs):
        ratios = [ratio for ratio in _ratios(runs[0]).get(site, ()) if ratio > 0 and math.isfinite(ratio)]
        every = [ratio for run in runs for ratio in _ratios(run).get(site, ())]
        if ratios:
            # A try that did not go far enough is followed by one that goes distance.
            distance = 10.0 ** (len(runs) // 2)
            aim = AIM_OVER * folded * distance if max(every) < OVER * folded else AIM_UNDER / distance
            yield aim / float(np.median(ratios))


def idle_sites(runs: Sequence[Ran]) -> list[str]:
    """The places of clips whose gradients lie on one side of their bound in all runs."""
    folded = _losses_an_update(runs[0])
    ratios: dict[str, list[float]] = {}
    for run in runs:
        for site, values in _ratios(run).items():
            ratios.setdefault(site, []).extend(values)
    return [site for site, values in ratios.items() if not (min(values) <= UNDER and max(values) >= OVER * folded)]


def _ratios(run: Ran) -> Mapping[str, list[float]]:
    """Place of a clip → the sizes of the gradients that it was given, as multiples of its bound. A bound of 0 is always exceeded."""
    rows: dict[str, list[float]] = {}
    for event in run.trace["events"]:
        if event["kind"] == "clip" and event["ratio"] is not None:
            rows.setdefault(event["site"], []).append(event["ratio"])
    return rows


def _losses_an_update(run: Ran) -> int:
    return max(map(len, run.losses), default=1) or 1


def clipping_verdict(clipping: Clipping, candidates: Sequence[Ran | str]) -> Verdict:
    """Whether both programs are the same with scaled gradients too. `candidates` are the candidate's runs, or why one does not run."""
    for one, candidate in zip(clipping.runs, candidates, strict=True):
        text = f"with gradients times {one.scale:.3g}, where the bounds of clipping matter: "
        if isinstance(candidate, str):
            return verdict("numeric", "clipping_fp64", "fail", text + candidate)
        pair = Pair(one.original, one.moved, candidate)
        bad = next((v for v in (check(pair) for check in (step_count, losses, parameters, printed_numbers)) if v.status != "pass"), None)
        if bad is not None:
            return verdict("numeric", "clipping_fp64", bad.status, text + bad.detail, bad.measured, bad.limit)
    if clipping.idle:
        return verdict("numeric", "clipping_fp64", "unverified", f"bounds on one side of all gradients: {', '.join(clipping.idle)}")
    return verdict("numeric", "clipping_fp64", "pass", f"{len(clipping.runs)} runs with scaled gradients" if clipping.runs else "")
