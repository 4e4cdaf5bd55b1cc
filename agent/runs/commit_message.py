"""Commit messages: a subject of at most 72 characters, the verdicts, and trailers by which we know our own commits."""

from __future__ import annotations

import math

from migrate_agent.agent.repository.git import TRAILER
from migrate_agent.tools.types import Evidence, Unit, UnitReport, Verdict

WIDTH = 72


def unit_message(unit: Unit, evidence: Evidence, base: str) -> str:
    """The message of a verified unit's commit. Holds nothing that changes from run to run, such as times."""
    passed = sum(verdict.status == "pass" for verdict in evidence.verdicts)
    return "\n".join(
        (
            subject(unit, "Run {} through torchax" if unit.id in evidence.torchax else "Migrate {} to JAX"),
            "",
            *_torchax(evidence),
            f"Target: {unit.target}",
            f"{passed} of {len(evidence.verdicts)} checks passed{f', reach: {evidence.reach}' if evidence.reach else ''}:",
            "",
            *table(evidence.verdicts),
            "",
            f"Migrate-Agent-Unit: {unit.id}",
            f"{TRAILER}: {base}",
            "",
        )
    )


def report_message(base: str, branch: str) -> str:
    """The message of the last commit of a run."""
    return f"Report the migration\n\nWhat was migrated on {branch}, what was not, and why.\n\n{TRAILER}: {base}\n"


def subject(unit: Unit, text: str = "Migrate {} to JAX") -> str:
    """`Migrate model.py:GPT to JAX`, by the class alone where that is too long."""
    full = text.format(unit.id)
    short = full if len(full) <= WIDTH else text.format(unit.name)
    return short if len(short) <= WIDTH else f"{short[: WIDTH - 1]}…"


def _torchax(evidence: Evidence) -> list[str]:
    """What is no rewrite, and what it needs."""
    names = ", ".join(evidence.torchax)
    return (
        [f"Not rewritten: {names}. It runs through torchax,", "and needs the original, torch and torchax at run time.", ""] if names else []
    )


def table(verdicts: tuple[Verdict, ...]) -> list[str]:
    """One line a verdict, in columns."""
    rows = [
        ("stage", "check", "status", "measured", "limit"),
        *((v.stage, v.check, v.status, number(v.measured), number(v.limit)) for v in verdicts),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def number(value: float | None) -> str:
    """Two digits are what a reader wants of a measurement."""
    if value is None:
        return ""
    return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e6 else f"{value:.2g}"


def program_message(row: UnitReport, base: str) -> str:
    """The message of a verified program's commit."""
    passed = sum(verdict.status == "pass" for verdict in row.verdicts)
    subject_line = f"Migrate {row.source} to JAX"
    return "\n".join(
        (
            subject_line if len(subject_line) <= WIDTH else f"{subject_line[: WIDTH - 1]}…",
            "",
            f"Target: {row.target}",
            f"{passed} of {len(row.verdicts)} checks passed:",
            "",
            *table(row.verdicts),
            "",
            f"Migrate-Agent-Unit: {row.source}",
            f"{TRAILER}: {base}",
            "",
        )
    )
