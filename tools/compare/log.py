"""What one log holds: series over steps, or serving requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from migrate_agent.tools.compare.kinds import AXES, BASES, canonical

Array = np.ndarray[Any, np.dtype[np.float64]]


class LogError(Exception):
    """A log that cannot be used: the message says which, where and why, in one line."""


class Point(NamedTuple):
    """One logged value, or one of an axis, at its position on the axis `base`."""

    base: str
    position: float
    name: str
    value: float


class Series(NamedTuple):
    """`positions` increase strictly; `values` may be infinite or NaN. Both have shape (n,), float64."""

    positions: Array
    values: Array


class Request(NamedTuple):
    """One served request. `latency` is in milliseconds, or in the log's own unit where it names none."""

    latency: float
    failed: bool | None


@dataclass(frozen=True)
class Log:
    """One run. `metrics` lie over the axis `base`; `axes` say where each position of `base` lies on the others."""

    name: str
    base: str = "step"
    metrics: Mapping[str, Series] = field(default_factory=dict)
    axes: Mapping[str, Series] = field(default_factory=dict)
    requests: tuple[Request, ...] = ()

    def on(self, axis: str, metric: str) -> Series | None:
        """The metric over another axis; None where the log does not say how they lie to each other."""
        series = self.metrics[metric]
        if axis == self.base:
            return series
        if axis not in self.axes:
            return None
        known = self.axes[axis]
        inside = (series.positions >= known.positions[0]) & (series.positions <= known.positions[-1])
        positions = np.interp(series.positions[inside], known.positions, known.values)
        return unique(positions, series.values[inside])


def unique(positions: Array, values: Array) -> Series:
    """In increasing order. Of several values at one position the last counts: a run that was resumed logs steps again."""
    last = dict(zip(positions.tolist(), values.tolist(), strict=True))
    ordered = sorted(last)
    return Series(np.array(ordered, np.float64), np.array([last[position] for position in ordered], np.float64))


def log_of(name: str, points: Iterable[Point], requests: Iterable[Request] = ()) -> Log:
    """The log of these points. Raises `LogError` where there are none."""
    rows, calls = list(points), tuple(requests)
    if not rows and not calls:
        raise LogError(f"{name}: holds no numbers beside a step, tokens or epoch, and no latencies")
    bases = Counter(point.base for point in rows)
    base = next((axis for axis in BASES if axis in bases), "step")
    groups: dict[str, list[Point]] = {}
    for point in rows:
        if point.base == base:
            groups.setdefault(point.name, []).append(point)
    series = {key: unique(np.array([p.position for p in own]), np.array([p.value for p in own])) for key, own in groups.items()}
    axes = {key: value for key, value in series.items() if key in AXES}
    return Log(name, base, _named({key: value for key, value in series.items() if key not in AXES}), axes, calls)


def _named(series: Mapping[str, Series]) -> Mapping[str, Series]:
    """By canonical name, and by their own where two of a log would share one."""
    counts = Counter(map(canonical, series))
    return {canonical(key) if counts[canonical(key)] == 1 else key: value for key, value in series.items()}
