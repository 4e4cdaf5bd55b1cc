"""One self-contained HTML page about a unit on TPUs: costs with bars of memory, refusals with their lines, collectives and padding."""

from __future__ import annotations

import html

from migrate_agent.agent.runs.verify_page import COLOURS, STYLE
from migrate_agent.agent.tpu import tables
from migrate_agent.agent.tpu.result import TpuResult, result_lines
from migrate_agent.tools.portable.cost import Cost

BAR = 360


def page(result: TpuResult) -> str:
    """The page's text."""
    title = f"{result.unit} on TPUs ({result.target})"
    body = [f"<h1>{html.escape(title)}</h1>", _table(result), "<h2>Memory of one device</h2>", *map(_bar, result.costs), _notes(result)]
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _table(result: TpuResult) -> str:
    head = "".join(f"<th>{column}" for column in tables.COLUMNS)
    rows = "".join(
        f"<tr class={'fail' if cost.refused else 'pass'}>" + "".join(f"<td>{html.escape(cell)}" for cell in tables.cells(cost)) + "</tr>"
        for cost in result.costs
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _bar(cost: Cost) -> str:
    """Arguments, results and temporaries side by side, against the device's memory."""
    if cost.refused or not cost.hbm:
        return ""
    name = f"{cost.topology} {cost.program}: {tables.size(cost.peak)} of {tables.size(cost.hbm)}"
    parts, x = "", 0.0
    kinds = ("argument", "output", "temp", "generated_code")
    for kind, colour in zip(kinds, COLOURS, strict=True):
        count = cost.memory[kind] - (cost.memory["alias"] if kind == "output" else 0)
        width = BAR * max(count, 0) / cost.hbm
        caption = f"{kind}: {tables.size(count)}"
        parts += f'<rect x="{x:.2f}" y="20" width="{width:.2f}" height="14" fill="{colour}"><title>{caption}</title></rect>'
        x += width
    frame = f'<rect x="0" y="20" width="{BAR}" height="14" fill="none" stroke="#999"/>'
    label = html.escape(name)
    return f'<svg width="{BAR + 10}" height="44" role="img" aria-label="{label}"><text x="0" y="14">{label}</text>{parts}{frame}</svg>'


def _notes(result: TpuResult) -> str:
    items = "".join(f"<li>{html.escape(line)}</li>" for line in result_lines(result))
    return f"<h2>Notes</h2><ul>{items}</ul>"
