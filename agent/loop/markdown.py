"""The Markdown report that is committed with the branch. Holds nothing that changes from run to run, such as times."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.report import problems, totals_line
from migrate_agent.agent.runs.commit_message import table
from migrate_agent.agent.runs.tables import lines_reached
from migrate_agent.tools.types import Finding, UnitReport

PATH = ".migrate/report.md"


def markdown(context: Context, units: Sequence[UnitReport]) -> str:
    """The whole report."""
    settings = context.settings
    counts = totals_line(units)
    parts = [
        "# Migration to JAX",
        f"Base `{settings.base[:12]}`, branch `{settings.branch}`: {counts}.",
        "Only units that the verifier found equivalent to the original are on this branch.",
        _torchax(units),
        _overview(units),
        *(_details(unit) for unit in units if unit.status != "skipped"),
        _findings(context.inventory.findings),
        _problems(context),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _torchax(units: Sequence[UnitReport]) -> str:
    names = [f"`{unit.id}`" for unit in units if unit.status == "verified" and unit.strategy == "torchax"]
    if not names:
        return ""
    return f"Not rewritten, but run through torchax: {', '.join(names)}. What uses these needs the original, torch and torchax at run time."


def _overview(units: Sequence[UnitReport]) -> str:
    lines = ["| unit | target | status | checks | lines | reason |", "|---|---|---|---|---|---|"]
    for unit in units:
        passed = sum(verdict.status == "pass" for verdict in unit.verdicts)
        checks = f"{passed}/{len(unit.verdicts)}" if unit.verdicts else ""
        reached = lines_reached(unit.reach)
        lines.append(f"| `{unit.id}` | `{unit.target}` | {unit.status} | {checks} | {reached} | {_cell(unit.reason)} |")
    return "\n".join(lines)


def _details(unit: UnitReport) -> str:
    lines = [f"## {unit.id}", f"{unit.status}, proposed by {unit.proposer}" + (f": {unit.reason}" if unit.reason else "")]
    if unit.llm.calls:
        used = unit.llm
        price = f", {used.cost:.4f} US dollars" if used.cost else ""
        lines.append(f"{used.calls} model calls, {used.input_tokens} tokens in, {used.output_tokens} out{price}")
    if unit.verdicts:
        lines.append(_fenced("\n".join(table(unit.verdicts))))
    remarks = [
        f"- {verdict.stage}/{verdict.check}: {verdict.detail}" for verdict in unit.verdicts if verdict.status != "pass" and verdict.detail
    ]
    remarks += [
        f"- {hole.source}:{hole.span.line}: `{hole.text.splitlines()[0] if hole.text else ''}` — {hole.reason} ({hole.code})"
        for hole in unit.holes
    ]
    remarks += [f"- {note}" for note in unit.notes if "\n" not in note]
    if remarks:
        lines.append("\n".join(remarks))
    lines += [_fenced(note, "toml") for note in unit.notes if "\n" in note]
    return "\n\n".join(lines)


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    lines = ["## What is no model maths", "", "| place | what | kind | strategy | why |", "|---|---|---|---|---|"]
    lines += [f"| `{f.source}:{f.line}` | `{_cell(f.name)}` | {f.kind} | {f.strategy} | {_cell(f.detail)} |" for f in findings]
    return "\n".join(lines)


def _problems(context: Context) -> str:
    broken = problems(context.inventory)
    return "\n".join(["## Files left out", "", *(f"- `{row['source']}`: {row['error']}" for row in broken)]) if broken else ""


def _fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text}\n```"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
