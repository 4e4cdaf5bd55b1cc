"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from migrate_agent.agent.runs.commit_message import number
from migrate_agent.agent.runs.progress import coloured
from migrate_agent.tools.types import Finding, SourceFile, Unit, UnitReport, Verdict

if TYPE_CHECKING:
    from migrate_agent.tools.checkpoint.matching import Row
    from migrate_agent.tools.programs.profile import Profile
    from migrate_agent.tools.verify.report.replay import Call

WEIGHTS = {
    "matches": "[green]matches[/]",
    "tied": "[green]tied[/]",
    "missing": "[red]missing[/]",
    "shape": "[red]another shape[/]",
    "extra": "[yellow]extra[/]",
}


def unit_table(units: Sequence[UnitReport]) -> RenderableType:
    """How each unit ended, the totals, and the examples to add where one is lacking."""
    table = _table("unit", "status", "checks", "lines", "seconds", "reason")
    for unit in units:
        passed = sum(verdict.status == "pass" for verdict in unit.verdicts)
        checks = f"{passed}/{len(unit.verdicts)}" if unit.verdicts else ""
        seconds = f"{unit.seconds:.1f}" if unit.seconds else ""
        table.add_row(escape(unit.id), coloured(unit.status), checks, lines_reached(unit.reach), seconds, escape(unit.reason))
    apart = sum(unit.status == "verified" and unit.strategy == "torchax" for unit in units)
    counts = {status: sum(unit.status == status for unit in units) for status in ("verified", "failed", "unverified", "skipped")}
    counts |= {"verified": counts["verified"] - apart, **({"through torchax": apart} if apart else {})}
    total = Text(", ".join(f"{count} {status}" for status, count in counts.items()))
    snippets = [Text(unit.example) for unit in units if unit.example]
    advice = (
        [Text("\nTo exercise the units that no example reached, complete this and add it to migrate.toml:"), *snippets] if snippets else []
    )
    return Group(table, total, *advice)


def program_table(programs: Sequence[Profile]) -> RenderableType:
    """Training scripts, with what they use and why they will be refused."""
    table = _table("program", "optimizers", "schedules", "uses", "refused for")
    for program in programs:
        columns = (", ".join(part) for part in (program.optimizers, program.schedules, program.features))
        table.add_row(escape(f"{program.source}:{program.line}"), *columns, escape("; ".join(program.refused)))
    return table


def lines_reached(reach: Mapping[str, int]) -> str:
    """`41/43` lines of the port that ran in compared calls; "" where that was not counted."""
    return f"{reach['reached']}/{reach['lines']}" if reach else ""


def verdict_table(verdicts: Sequence[Verdict]) -> RenderableType:
    """One row a verdict."""
    table = _table("stage", "check", "status", "measured", "limit", "detail")
    for verdict in verdicts:
        numbers = (number(verdict.measured), number(verdict.limit))
        table.add_row(verdict.stage, verdict.check, coloured(verdict.status), *numbers, escape(verdict.detail))
    return table


def call_table(calls: Sequence[Call]) -> RenderableType:
    """One row a call of a submodule, with the errors of what goes in and comes out."""
    table = _table("submodule", "kind", "error in", "error out")
    for call in calls:
        table.add_row(escape(call.path or "the unit itself"), escape(call.kind), number(call.into), number(call.out))
    return table


def weight_table(rows: Sequence[Row], to: str) -> RenderableType:
    """One row an entry of the port with its tensor, and one for each tensor that has no entry."""
    table = _table("torch", "shape", "port", "shape", "in the checkpoint", "")
    for row in rows:
        entry, tensor = row.entry, row.tensor
        names = (entry.name, str(entry.shape), entry.path, str(entry.stored)) if entry else ("",) * 4
        spelt = entry and row.name == (entry.name if to == "jax" else entry.path) and row.kind == "matches"
        there = "" if tensor is None or spelt else f"{row.name} {tensor.shape if row.kind != 'matches' else ''}".strip()
        table.add_row(*map(escape, names), escape(there), WEIGHTS[row.kind])
    return table


def inventory_table(units: Sequence[Unit]) -> RenderableType:
    """Units in the order of work."""
    table = _table("", "unit", "target", "strategy", "needs", "reason")
    for position, unit in enumerate(units, 1):
        needs = ", ".join(need.rpartition(":")[2] for need in unit.needs)
        table.add_row(str(position), escape(unit.id), escape(unit.target), unit.strategy, escape(needs), escape(unit.reason))
    return table


def finding_table(findings: Sequence[Finding]) -> RenderableType:
    """What is no model maths."""
    table = _table("place", "what", "kind", "strategy", "why")
    for finding in findings:
        position = escape(f"{finding.source}:{finding.line}")
        table.add_row(position, escape(finding.name), finding.kind, finding.strategy, escape(finding.detail))
    return table


def problem_table(files: Sequence[SourceFile]) -> RenderableType:
    """Files that do not parse."""
    table = _table("file", "left out because")
    for file in files:
        table.add_row(escape(file.path), f"[red]{escape(file.error)}[/]")
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=False)
    return table
