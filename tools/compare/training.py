"""Findings about training runs: losses and other measures of quality over the run, and its speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from migrate_agent.tools.compare.align import Aligned, Unaligned, align, chosen, smoothed
from migrate_agent.tools.compare.finding import Finding, decide, percent
from migrate_agent.tools.compare.kinds import kind_of
from migrate_agent.tools.compare.limits import Limits
from migrate_agent.tools.compare.log import Array, Log
from migrate_agent.tools.compare.noise import margin

WARM_UP = 0.1
"""The first part of a run does not count for its speed: programs are compiled there."""


def curve_findings(a: Sequence[Log], b: Sequence[Log], metric: str, axis: str, limits: Limits) -> Iterator[Finding]:
    """A metric of quality at the chosen positions: a difference either way counts, since the program should be the same."""
    kind = kind_of(metric)
    try:
        aligned = align(a, b, metric, axis, limits.points)
        indices = chosen(aligned, limits)
    except Unaligned as error:
        yield Finding(metric, kind, "cannot say", str(error))
        return
    if (broken := _not_finite(metric, kind, aligned)) is not None:
        yield broken
        return
    for index in indices:
        at = f"{axis} {aligned.positions[index]:g}"
        yield _value(metric, kind, at, smoothed(aligned.a, index, limits.window), smoothed(aligned.b, index, limits.window), limits)


def _value(metric: str, kind: str, at: str, a: Array, b: Array, limits: Limits) -> Finding:
    mean_a, mean_b = float(a.mean()), float(b.mean())
    if mean_a == 0.0 != mean_b:
        return Finding(metric, kind, "cannot say", f"{metric} of A is 0, so that there is no relative difference", at, mean_a, mean_b)
    change = (mean_b - mean_a) / abs(mean_a) if mean_a else 0.0
    noise = margin(a, b, limits.noise)
    decision, reason = decide(abs(change), noise, limits.loss, limits.loss_rollback)
    detail = f"{metric} at {at}: {mean_a:.5g} and {mean_b:.5g}: {reason}"
    return Finding(metric, kind, decision, detail, at, mean_a, mean_b, change, noise, limits.loss, limits.loss_rollback)


def _not_finite(metric: str, kind: str, aligned: Aligned) -> Finding | None:
    """A baseline that is not finite says nothing; a new side that alone is not is the worst difference there is."""
    for side, values, decision in (("A", aligned.a, "cannot say"), ("B", aligned.b, "roll back")):
        broken = ~np.isfinite(values).all(axis=0)
        if broken.any():
            at = f"{aligned.axis} {aligned.positions[int(broken.argmax())]:g}"
            return Finding(metric, kind, decision, f"{metric} of {side} is not finite from {at} on", at)  # type: ignore[arg-type]
    return None


def speed_finding(a: Sequence[Log], b: Sequence[Log], shared: Sequence[str], limits: Limits) -> Finding | None:
    """How much longer B takes, by a logged rate or time of a step, else by the clock; None where the logs do not say."""
    for metric in shared:
        if (kind := kind_of(metric)) in ("throughput", "step_time"):
            before, after = (np.array([_typical(log, metric) for log in side]) for side in (a, b))
            return _speed(metric, before, after, limits) if kind == "throughput" else _speed(metric, 1 / before, 1 / after, limits)
    for axis in ("tokens", "step"):
        before, after = (np.array([_rate(log, axis) for log in side]) for side in (a, b))
        if all(np.isfinite(side).all() and (side > 0).all() for side in (before, after)):
            return _speed("tokens per second" if axis == "tokens" else "steps per second", before, after, limits)
    return None


def _typical(log: Log, metric: str) -> float:
    values = log.metrics[metric].values
    return float(np.median(values[int(WARM_UP * len(values)) :]))


def _rate(log: Log, axis: str) -> float:
    """Median over the run of the positions that go by in a second; NaN where the log has no clock."""
    clock = log.axes.get("seconds")
    if clock is None or len(clock.positions) < 3:
        return float("nan")
    progress = clock.positions if axis == log.base else None
    if progress is None and (other := log.axes.get(axis)) is not None:
        progress = np.interp(clock.positions, other.positions, other.values)
    if progress is None:
        return float("nan")
    first = max(round(WARM_UP * len(progress)), 1)
    positions, seconds = np.diff(progress)[first - 1 :], np.diff(clock.values)[first - 1 :]
    if np.sum(seconds) <= 0:  # no clock: the time of each step, say
        return float("nan")
    # A clock of the log with few digits may stand still for a step.
    return float(np.sum(positions) / np.sum(seconds)) if (seconds <= 0).any() else float(np.median(positions / seconds))


def _speed(metric: str, a: Array, b: Array, limits: Limits) -> Finding:
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a > 0).all() and (b > 0).all()):
        return Finding(metric, "throughput", "cannot say", f"{metric} is not a positive number in every run")
    mean_a, mean_b = float(a.mean()), float(b.mean())
    slower = mean_a / mean_b - 1
    noise = margin(a, b, None)
    decision, reason = decide(slower, noise, limits.slower, limits.slower_rollback)
    words = f"{percent(slower)} slower" if slower > 0 else f"{percent(mean_b / mean_a - 1)} faster"
    detail = f"{metric}: {mean_a:.4g} and {mean_b:.4g}, {words}: {reason}"
    return Finding(metric, "throughput", decision, detail, "", mean_a, mean_b, slower, noise, limits.slower, limits.slower_rollback)
