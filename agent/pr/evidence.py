"""The files that lie beside the code on a branch: the sheet, a page for the forge, a page for a browser, and a plot. All small."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from markupsafe import Markup

from migrate_agent.agent.pr.body import closeness, environment, origin_line
from migrate_agent.agent.pr.commits import Bench
from migrate_agent.agent.pr.run import Change
from migrate_agent.agent.pr.sheet import NAME, folder_of, to_text
from migrate_agent.agent.runs.class_text import class_text
from migrate_agent.agent.runs.commit_message import number
from migrate_agent.agent.runs.verify_page import COLOURS, STYLE
from migrate_agent.tools.types import Verdict

LONGEST = 60_000
"""Characters of one class that are shown side by side."""
DECADES, WIDTH, NAMES = 12, 420, 190
"""Powers of ten, and pixels, of the plot."""


def files(bench: Bench, change: Change) -> dict[str, str]:
    """Path → text of a unit's evidence."""
    sheet = change.sheet
    before = shown(bench.read(sheet.base, sheet.source), sheet.name)
    after = shown(bench.read(change.commit, sheet.target), sheet.name)
    plot = margins(sheet.verdicts)
    values = {"sheet": sheet, "how": origin_line(sheet), "before": before, "after": after}
    page = environment(html=True).get_template("evidence.html").render(**values, plot=Markup(plot), style=Markup(STYLE))
    pages = {
        NAME: to_text(sheet),
        "README.md": environment().get_template("evidence.md").render(**values),
        "report.html": page + "\n",
        "verdicts.svg": plot,
    }
    return {f"{folder_of(change.unit)}/{name}": text for name, text in pages.items()}


def shown(text: str | None, name: str) -> str:
    """The class's text, cut where it is very long."""
    source = class_text(text, name) if text is not None else ""
    return source if len(source) <= LONGEST else f"{source[:LONGEST]}\n# … {len(source) - LONGEST} characters more"


def margins(verdicts: Sequence[Verdict]) -> str:
    """A bar for each check with numbers, as far as it uses its limit, on a log scale: the right edge is the limit."""
    rows = [(verdict, used) for verdict in verdicts if (used := closeness(verdict)) is not None]
    start, height = NAMES + 10, 44 + 20 * len(rows)
    body = ""
    for row, (verdict, used) in enumerate(rows):
        size = (max(math.log10(used), -DECADES) + DECADES) / DECADES * WIDTH if used > 0 else 0.0
        y = 30 + 20 * row
        label = html.escape(f"{number(verdict.measured)} of {number(verdict.limit)}")
        body += f'<text x="{NAMES}" y="{y + 11}" text-anchor="end">{html.escape(verdict.check)}</text>'
        body += f'<rect x="{start}" y="{y}" width="{max(size, 1):.1f}" height="14" fill="{COLOURS[0]}"/>'
        body += f'<text x="{start + WIDTH + 8}" y="{y + 11}">{label}</text>'
    edge = f'<line x1="{start + WIDTH}" x2="{start + WIDTH}" y1="24" y2="{height - 12}" stroke="{COLOURS[1]}"/>'
    title = "how much of its limit each check uses (log scale, the line is the limit)"
    style = 'font-family="system-ui,sans-serif" font-size="11" fill="#444"'
    extent = f'width="{start + WIDTH + 160}" height="{height}"'
    caption = f'<text x="10" y="16" font-weight="bold">{title}</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {extent} {style} role="img"><title>{title}</title>{caption}{body}{edge}</svg>\n'
