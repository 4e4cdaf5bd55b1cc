"""One self-contained HTML page about a verification: verdicts, error distributions, training curves, errors by submodule. Plots are inline SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from migrate_agent.agent.runs.commit_message import number
from migrate_agent.tools.types import Evidence

STYLE = """
body{font:14px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .8em .15em 0;text-align:left;vertical-align:top}
th{border-bottom:1px solid #999}.pass,.verified{color:#0a7d33}.fail,.failed{color:#b3261e}.unverified{color:#8a6100}
svg{background:#fafafa;border:1px solid #ddd;margin:.5em 1em .5em 0}svg text{font:11px system-ui,sans-serif;fill:#444}code{background:#f2f2f2}
"""
COLOURS = ("#2b6cb0", "#c05621", "#718096", "#2f855a")
WIDTH, HEIGHT, LEFT, BOTTOM = 460, 240, 56, 34


def page(evidence: Evidence, against: str, details: Mapping[str, Any]) -> str:
    """The page's text. `details` is what the verifier wrote beside its verdicts."""
    title = f"{evidence.unit} against {against}"
    parts = [
        f"<h1>{_text(title)}</h1><p class={evidence.status}><b>{evidence.status}</b> in {evidence.seconds:.1f} s</p>",
        "<h2>Verdicts</h2>" + _verdicts(evidence),
        _list("Notes", evidence.notes),
        _list("Figures", [f"{key}: {value:.6g}" for key, value in evidence.figures.items()]),
        _section("Error distributions", [histogram(details.get("histogram") or {}), errors(details.get("errors") or [])]),
        _section("Training curves", curves(details.get("curves") or {})),
        _section("Error by submodule", [submodules(details.get("submodules") or [])]),
    ]
    head = f'<meta charset="utf-8"><title>{_text(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _text(value: object) -> str:
    return html.escape(str(value))


def _section(title: str, parts: Iterable[str]) -> str:
    body = "".join(parts)
    return f"<h2>{title}</h2>{body}" if body else ""


def _list(title: str, lines: Sequence[str]) -> str:
    return f"<h2>{title}</h2><ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>" if lines else ""


def _verdicts(evidence: Evidence) -> str:
    rows = "".join(
        f"<tr><td>{v.stage}<td>{v.check}<td class={v.status}>{v.status}<td>{number(v.measured)}<td>{number(v.limit)}<td>{_text(v.detail)}</tr>"
        for v in evidence.verdicts
    )
    return f"<table><tr><th>stage<th>check<th>status<th>measured<th>limit<th>detail</tr>{rows}</table>"


def plot(title: str, body: str, x: Sequence[tuple[float, str]], y: Sequence[tuple[float, str]]) -> str:
    """A frame with marks on both axes; their places are in pixels."""
    marks = "".join(f'<text x="{pixel:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_text(name)}</text>' for pixel, name in x)
    marks += "".join(
        f'<text x="{LEFT - 6}" y="{pixel + 4:.1f}" text-anchor="end">{_text(name)}</text>'
        f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{pixel:.1f}" y2="{pixel:.1f}" stroke="#e2e2e2"/>'
        for pixel, name in y
    )
    caption = f'<text x="{LEFT}" y="16" font-weight="bold">{_text(title)}</text>'
    return f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{_text(title)}">{marks}{caption}{body}</svg>'


def histogram(counts: Mapping[str, Any]) -> str:
    """Elements by the power of ten of their error, double and single precision."""
    if not counts or not any((*counts["exact"], *counts["native"])):
        return ""
    bins, top = counts["bins"], max(*counts["exact"], *counts["native"])
    step, span = (WIDTH - LEFT - 10) / len(bins), HEIGHT - BOTTOM - 30
    body = ""
    for shift, (kind, colour) in enumerate((("exact", COLOURS[0]), ("native", COLOURS[1]))):
        for index, count in enumerate(counts[kind]):
            size = span * math.log1p(count) / math.log1p(top)
            x = LEFT + index * step + shift * step / 2
            caption = f"{kind}: {count} elements near 1e{bins[index]}"
            body += f'<rect x="{x:.1f}" y="{HEIGHT - BOTTOM - size:.1f}" width="{step / 2 - 1:.1f}" height="{size:.1f}" fill="{colour}">'
            body += f"<title>{caption}</title></rect>"
    marks = [(LEFT + index * step + step / 2, f"1e{power}") for index, power in enumerate(bins) if index % 4 == 0]
    title = "elements by relative error (log counts): float64 blue, native orange"
    return plot(title, body, marks, [(HEIGHT - BOTTOM - span, str(top)), (HEIGHT - BOTTOM, "0")])


def errors(rows: Sequence[Mapping[str, Any]]) -> str:
    """Each compared array as a point: its error and its limit."""
    measured = [row for row in rows if row["error"] is not None]
    if not measured:
        return ""
    low, high = -17.0, 1.0
    step = (WIDTH - LEFT - 10) / len(measured)

    def place(value: float) -> float:
        power = min(max(math.log10(value) if value > 0 else low, low), high)
        return HEIGHT - BOTTOM - (power - low) / (high - low) * (HEIGHT - BOTTOM - 30)

    body = "".join(
        f'<circle cx="{LEFT + (index + 0.5) * step:.1f}" cy="{place(row["error"]):.1f}" r="3" fill="{COLOURS[0]}">'
        f"<title>{_text(row['label'])}: {row['error']:.2e}, limit {row['limit']:.1e}</title></circle>"
        f'<line x1="{LEFT + index * step:.1f}" x2="{LEFT + (index + 1) * step:.1f}" y1="{place(row["limit"]):.1f}" y2="{place(row["limit"]):.1f}"'
        f' stroke="{COLOURS[1]}"/>'
        for index, row in enumerate(measured)
    )
    marks = [(place(10.0**power), f"1e{power}") for power in (-16, -12, -8, -4, 0)]
    return plot("every compared array: error (blue) and limit (orange)", body, [], marks)


def curves(losses: Mapping[str, Any]) -> list[str]:
    """Losses by step, of torch and of the port, one plot for each optimiser and precision."""
    plots = []
    for optimiser, kinds in losses.items():
        for kind, series in kinds.items():
            values = [value for line in series.values() for value in line if value is not None and math.isfinite(value)]
            if values:
                plots.append(_curve(f"{optimiser}, {kind}: loss by step, torch blue, jax orange dots", series, min(values), max(values)))
                plots.append(_difference(f"{optimiser}, {kind}: jax - torch", series))
    return plots


def _difference(title: str, series: Mapping[str, Sequence[float]]) -> str:
    """What lies between the two curves, where both are finite."""
    pairs = [(a, b) for a, b in zip(series["torch"], series["jax"], strict=False) if a is not None and b is not None]
    apart = [b - a for a, b in pairs if math.isfinite(b - a)]
    return _curve(title, {"torch": [0.0] * len(apart), "jax": apart}, min([0.0, *apart]), max([0.0, *apart])) if apart else ""


def _curve(title: str, series: Mapping[str, Sequence[float]], low: float, high: float) -> str:
    span = (high - low) or 1.0
    count = max(len(line) for line in series.values())

    def place(index: int, value: float) -> tuple[float, float]:
        return LEFT + 10 + index * (WIDTH - LEFT - 30) / max(count - 1, 1), HEIGHT - BOTTOM - 6 - (value - low) / span * (
            HEIGHT - BOTTOM - 42
        )

    points = [place(index, value) for index, value in enumerate(series["torch"]) if math.isfinite(value)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    body = f'<polyline points="{line}" fill="none" stroke="{COLOURS[0]}" stroke-width="2"/>'
    for index, value in enumerate(series["jax"]):
        if math.isfinite(value):
            x, y = place(index, value)
            body += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="none" stroke="{COLOURS[1]}" stroke-width="2"><title>{value:.8g}</title></circle>'
    steps = [(place(index, low)[0], str(index)) for index in range(0, count, -(-count // 12))]
    return plot(title, body, steps, [(place(0, low)[1], f"{low:.4g}"), (place(0, high)[1], f"{high:.4g}")])


def submodules(rows: Sequence[Mapping[str, Any]]) -> str:
    """A bar for each call of a submodule: the power of ten of the error that came out of it."""
    if not rows:
        return ""
    lines = ""
    for index, row in enumerate(rows):
        out = 1.0 if row["out"] is None else max(row["out"], 1e-17)
        size = (math.log10(out) + 17) / 17 * 300
        y = 30 + index * 20
        name = f"{row['path'] or 'the unit itself'} ({row['kind']})"
        label = "differs in form" if row["out"] is None else f"{row['out']:.1e}"
        lines += f'<text x="330" y="{y + 11}" text-anchor="end">{_text(name)}</text>'
        lines += f'<rect x="338" y="{y}" width="{max(size, 1):.1f}" height="14" fill="{COLOURS[0]}"/><text x="{344 + size:.1f}" y="{y + 11}">{label}</text>'
    caption = '<text x="8" y="18" font-weight="bold">relative error of what each call gives, in float64 (log scale)</text>'
    return f'<svg width="760" height="{40 + 20 * len(rows)}" role="img" aria-label="error by submodule">{caption}{lines}</svg>'
