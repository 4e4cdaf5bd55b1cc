"""What `migrate-agent check` tells: a table, annotations where GitHub reads them, and JSON."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from migrate_agent.agent.commands.check_result import Checked
from migrate_agent.agent.loop.cached_verdicts import TAKEN
from migrate_agent.agent.loop.report import VERSION, verdict_row
from migrate_agent.agent.runs.progress import coloured, stdout

SHOWN = 4
"""Changes of one unit that the table names."""


def show(rows: Sequence[Checked], updated: bool) -> None:
    """Print what changed, what that came to, and the sum in one line."""
    out = stdout()
    changed = [row for row in rows if row.changes or row.reason]
    if changed:
        out.print(_table(changed))
    for note in dict.fromkeys(note for row in rows for note in row.notes):
        out.print(f"note: other than it was verified with: {escape(note)} (--versions verifies again)")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in commands(changed):
            print(line)
    wrong = [row for row in rows if not row.holds]
    again = [row for row in changed if row.evidence is not None and row.holds]
    if again and not updated:
        out.print("`migrate-agent check --update` notes that these match; commit what it writes, and they are not run again")
    taken = sum(TAKEN in row.evidence.notes for row in rows if row.evidence is not None)
    if taken:
        out.print(f"{taken} of them: {TAKEN}")
    out.print(
        f"{len(rows)} verified units: {len(rows) - len(changed)} unchanged, {len(again)} changed and match, {len(wrong)} do not match"
    )


def _table(rows: Sequence[Checked]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("unit", "status", "what changed", "reason"):
        table.add_column(column, overflow="fold")
    for row in rows:
        more = [f"and {len(row.changes) - SHOWN} more"] if len(row.changes) > SHOWN else []
        changes = "; ".join([*row.changes[:SHOWN], *more])
        table.add_row(escape(row.then.id), coloured(row.status), escape(changes), escape(row.reason))
    return table


def commands(rows: Sequence[Checked]) -> Iterator[str]:
    """GitHub's workflow commands: an error on the port of each unit that does not match.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    for row in rows:
        if not row.holds:
            text = _escaped(f"{row.then.id} and its port no longer match: {row.reason}")
            yield f"::error file={_escaped(row.then.target, ':,')},title=migrate-agent check::{text}"


def _escaped(text: str, more: str = "") -> str:
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def document(rows: Sequence[Checked], root: Path) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "version": VERSION,
        "repo": str(root),
        "totals": dict(sorted(Counter(row.status for row in rows).items())),
        "units": [
            {
                "source": row.then.source,
                "name": row.then.name,
                "target": row.then.target,
                "status": row.status,
                "matches": row.holds,
                "changes": list(row.changes),
                "reason": row.reason,
                "verdicts": [verdict_row(verdict) for verdict in row.evidence.verdicts] if row.evidence else [],
                "notes": list(row.evidence.notes) if row.evidence else [],
            }
            for row in rows
        ],
    }
