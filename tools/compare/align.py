"""Both sides of one metric on one axis, at the same places."""

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
    """`a` and `b` have shape (runs, n), at `places` (n,) of `axis`. Where logs have other places, values lie on the line between two of them."""

    axis: str
    places: Array
    a: Array
    b: Array


class Unaligned(Exception):
    """Why two sides have no common places, in one line."""


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
    if side[0].base != "step" or series is None or len(series.places) < 2:
        return 0.0
    return float((series.values[-1] - series.values[0]) / (series.places[-1] - series.places[0]))


def align(a: Sequence[Log], b: Sequence[Log], metric: str, axis: str, points: int) -> Aligned:
    """Raises `Unaligned` where the ranges do not overlap, or hold fewer places than `points`."""
    series = [log.on(axis, metric) for log in (*a, *b)]
    known = [each for each in series if each is not None and len(each.places)]
    if len(known) < len(series):
        raise Unaligned(f"{metric}: not every log says its {axis}")
    low, high = max(each.places[0] for each in known), min(each.places[-1] for each in known)
    if low > high:
        side_a, side_b = _range(known[: len(a)]), _range(known[len(a) :])
        raise Unaligned(f"{metric}: the {axis}s of both sides do not overlap: A has {side_a}, B has {side_b}")
    # The places of the log that has fewest: between two of another's the line is a better guess than the other way round.
    places = min((each.places[(each.places >= low) & (each.places <= high)] for each in known), key=len)
    if len(places) < points:
        raise Unaligned(f"{metric}: too few points: both sides have {len(places)} {axis}s in common, and {points} are needed (--points)")
    values = np.stack([np.interp(places, each.places, each.values) for each in known])
    return Aligned(axis, places, values[: len(a)], values[len(a) :])


def _range(series: Sequence[Series]) -> str:
    return f"{min(each.places[0] for each in series):g} to {max(each.places[-1] for each in series):g}"


def chosen(aligned: Aligned, limits: Limits) -> list[int]:
    """Indices of the places that are compared. Raises `Unaligned` where one that was asked for is not in the common range."""
    places = aligned.places
    if limits.at:
        outside = [place for place in limits.at if not places[0] <= place <= places[-1]]
        if outside:
            raise Unaligned(f"{aligned.axis} {outside[0]:g} is not in the common range, {places[0]:g} to {places[-1]:g}")
        return sorted({int(np.searchsorted(places, place)) for place in limits.at})
    if aligned.axis == "epoch":
        wanted = [epoch for epoch in EPOCHS if places[0] <= epoch <= places[-1]]
        return sorted({*(int(np.searchsorted(places, epoch)) for epoch in wanted), len(places) - 1})
    return sorted({max(math.ceil(fraction * len(places)), 1) - 1 for fraction in FRACTIONS})


def smoothed(values: Array, index: int, window: float) -> Array:
    """The mean of each run (runs,) over a part of the points up to this one."""
    width = max(round(window * values.shape[1]), 1)
    return np.asarray(values[:, max(index + 1 - width, 0) : index + 1].mean(axis=1), np.float64)
