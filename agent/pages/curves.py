"""Curves of both sides in one frame, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from markupsafe import Markup, escape

from migrate_agent.tools.compare.align import Aligned
from migrate_agent.tools.compare.log import Array

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 520, 260, 62, 14, 28, 34
MOST_POINTS = 400
"""A curve with more is drawn by every n-th: a page stays small, and a screen shows no more."""
Scale = Callable[[float], float]


def chart(title: str, curve: Aligned, marks: Sequence[float]) -> Markup:
    """The frame with its curves; "" where no value is finite."""
    values = np.concatenate([curve.a, curve.b])
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Markup("")
    x = _scale(float(curve.positions[0]), float(curve.positions[-1]), LEFT, WIDTH - RIGHT)
    low, high = float(finite.min()), float(finite.max())
    y = _scale(low, high, HEIGHT - BOTTOM, TOP)
    body = "".join(_side(curve.positions, side, name, x, y) for side, name in ((curve.a, "a"), (curve.b, "b")))
    dashes = "".join(
        f'<line class="mark" x1="{x(position):.1f}" x2="{x(position):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>' for position in marks
    )
    caption = f'<text x="{LEFT}" y="17" font-weight="bold">{escape(title)} by {escape(curve.axis)}</text>'
    label = escape(f"{title} of both sides by {curve.axis}")
    axes = _axis_x(curve.positions, x) + _axis_y(low, high, y)
    return Markup(f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{label}">{axes}{dashes}{body}{caption}</svg>')


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    span = high - low or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _side(positions: Array, runs: Array, name: str, x: Scale, y: Scale) -> str:
    lines = [_line(positions, run, name, x, y, 1, 0.45) for run in runs] if len(runs) > 1 else []
    return "".join([*lines, _line(positions, runs.mean(axis=0), name, x, y, 2, 1)])


def _line(positions: Array, values: Array, name: str, x: Scale, y: Scale, width: float, opacity: float) -> str:
    """A value that is not finite leaves a gap."""
    every = max(len(positions) // MOST_POINTS, 1)
    path, pen = "", "M"
    for position, value in zip(positions[::every].tolist(), values[::every].tolist(), strict=True):
        if math.isfinite(value):
            path += f"{pen}{x(position):.1f} {y(value):.1f}"
        pen = "L" if math.isfinite(value) else "M"
    return f'<path class="{name}" d="{path}" fill="none" stroke-width="{width}" opacity="{opacity}"/>'


def _axis_x(positions: Array, x: Scale) -> str:
    low, high = float(positions[0]), float(positions[-1])
    marks = [low, (low + high) / 2, high]
    return "".join(f'<text x="{x(value):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{value:.6g}</text>' for value in marks)


def _axis_y(low: float, high: float, y: Scale) -> str:
    marks = [low + (high - low) * part / 4 for part in range(5)]
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>'
        for value in marks
    )
