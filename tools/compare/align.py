"""Both sides of one metric on one axis, at the same positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from migrate_agent.tools.compare.limits import EPOCHS, FRACTIONS, Limits
from migrate_agent.tools.compare.log import Array, Log, Series

SAME_TOKENS = 0.01
"""Tokens of a step of both sides count as equal up to this part."""


@dataclass(frozen=True)
class Aligned:
    """`a` and `b` have shape (runs, n), at `positions` (n,) of `axis`. Where logs have other positions, values lie on the line between two of them."""

    axis: str
    positions: Array
    a: Array
    b: Array


class Unaligned(Exception):
    """Why two sides have no common positions, in one line."""


def common_axis(a: Sequence[Log], b: Sequence[Log], limits: Limits) -> tuple[str, str]:
    """The axis to compare on, and a note where that is not the step. Raises `Unaligned`."""
    logs = (*a, *b)
    shared = [axis for axis in ("step", "tokens", "epoch") if all(axis == log.base or axis in log.axes for log in logs)]
    if limits.by != "auto":
        if limits.by not in shared:
            raise Unaligned(f"not every log says its {limits.by}: compare by {' or '.join(shared) or 'another axis'}")
        return limits.by, ""
    if not shared:
        raise Unaligned("the logs share no axis: each needs a step, tokens or an epoch")
    sizes = (_step_tokens(a), _step_tokens(b))
    if shared[:2] == ["step", "tokens"] and all(sizes) and not math.isclose(*sizes, rel_tol=SAME_TOKENS):
        return "tokens", f"compared by tokens: a step of A has {sizes[0]:.6g} tokens, one of B {sizes[1]:.6g}"
    return shared[0], ""


def _step_tokens(side: Sequence[Log]) -> float:
    """Tokens of one step, 0 where the logs do not say."""
    series = side[0].axes.get("tokens")
    if side[0].base != "step" or series is None or len(series.positions) < 2:
        return 0.0
    return float((series.values[-1] - series.values[0]) / (series.positions[-1] - series.positions[0]))


def align(a: Sequence[Log], b: Sequence[Log], metric: str, axis: str, points: int) -> Aligned:
    """Raises `Unaligned` where the ranges do not overlap, or hold fewer positions than `points`."""
    series = [log.on(axis, metric) for log in (*a, *b)]
    overlap = [run for run in series if run is not None and len(run.positions)]
    if len(overlap) < len(series):
        raise Unaligned(f"{metric}: not every log says its {axis}")
    low, high = max(run.positions[0] for run in overlap), min(run.positions[-1] for run in overlap)
    if low > high:
        side_a, side_b = _range(overlap[: len(a)]), _range(overlap[len(a) :])
        raise Unaligned(f"{metric}: the {axis}s of both sides do not overlap: A has {side_a}, B has {side_b}")
    # The positions of the log that has fewest: between two of another's the line is a better guess than the other way round.
    positions = min(
        (run.positions[(run.positions >= low) & (run.positions <= high)] for run in overlap),
        key=len,
    )
    if len(positions) < points:
        raise Unaligned(f"{metric}: too few points: both sides have {len(positions)} {axis}s in common, and {points} are needed (--points)")
    values = np.stack([np.interp(positions, run.positions, run.values) for run in overlap])
    return Aligned(axis, positions, values[: len(a)], values[len(a) :])


def _range(series: Sequence[Series]) -> str:
    return f"{min(run.positions[0] for run in series):g} to {max(run.positions[-1] for run in series):g}"


def chosen(aligned: Aligned, limits: Limits) -> list[int]:
    """Indices of the positions that are compared. Raises `Unaligned` where one that was asked for is not in the common range."""
    positions = aligned.positions
    if limits.at:
        outside = [position for position in limits.at if not positions[0] <= position <= positions[-1]]
        if outside:
            raise Unaligned(f"{aligned.axis} {outside[0]:g} is not in the common range, {positions[0]:g} to {positions[-1]:g}")
        return sorted({int(np.searchsorted(positions, position)) for position in limits.at})
    if aligned.axis == "epoch":
        epochs = [epoch for epoch in EPOCHS if positions[0] <= epoch <= positions[-1]]
        return sorted({*(int(np.searchsorted(positions, epoch)) for epoch in epochs), len(positions) - 1})
    return sorted({max(math.ceil(fraction * len(positions)), 1) - 1 for fraction in FRACTIONS})


def smoothed(values: Array, index: int, window: float) -> Array:
    """The mean of each run (runs,) over a part of the points up to this one."""
    width = max(round(window * values.shape[1]), 1)
    return np.asarray(values[:, max(index + 1 - width, 0) : index + 1].mean(axis=1), np.float64)
