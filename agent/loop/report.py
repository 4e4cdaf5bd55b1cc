"""The report of a run: JSON (version 1, the contract), Markdown for the branch, a table for the terminal, and the exit status."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.agent.config.json_files import plain, write_text
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.programs import program_rows
from migrate_agent.agent.loop.unreached import all_figures
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Cause, Inventory, UnitReport, Verdict

VERSION = 1
STATUSES = ("verified", "failed", "unverified", "skipped")


def report_rows(context: Context, position: int) -> list[UnitReport]:
    """One row for each unit in scope, in the inventory's order; those at or after `position` of the plan were not reached."""
    settled = context.settled(max(position, 0))
    waiting = {identifier: "not reached: the run was interrupted" for identifier in context.plan.order if identifier not in settled}
    reached = all_figures(context, len(settled))
    reports = {name: replace(report, reach=reached.get(name, report.reach)) for name, report in settled.items()}
    for identifier, reason in (*context.plan.skipped.items(), *waiting.items()):
        unit = context.inventory.unit(identifier)
        status = "skipped" if identifier in context.plan.skipped else "unverified"
        cause = Cause.SCOPE if status == "skipped" else Cause.INTERRUPTED
        reports[identifier] = UnitReport(unit.source, unit.name, unit.target, status, reason=reason, cause=cause, kind=unit.kind)  # type: ignore[arg-type]
    return [*(reports[unit.id] for unit in context.inventory.units if unit.id in reports), *program_rows(context)]


def report_json(context: Context, units: Sequence[UnitReport]) -> dict[str, Any]:
    """The JSON report. `problems` are files that were left out since they do not parse."""
    settings = context.settings
    return {
        "version": VERSION,
        "repo": settings.root,
        "base": settings.base,
        "branch": settings.branch,
        "totals": totals(units),
        "units": [{**plain(unit), "verdicts": [verdict_row(verdict) for verdict in unit.verdicts]} for unit in units],
        "problems": problems(context.inventory),
    }


def totals(units: Sequence[UnitReport]) -> dict[str, int]:
    """How many units ended in each status; those that are verified but run their original through torchax are counted apart, as `torchax`."""
    apart = [unit for unit in units if unit.status == "verified" and unit.strategy == "torchax"]
    counts = {status: sum(unit.status == status for unit in units) for status in STATUSES}
    return {**counts, "verified": counts["verified"] - len(apart), "torchax": len(apart)}


def totals_line(units: Sequence[UnitReport]) -> str:
    """`2 verified, 1 through torchax, 3 skipped`."""
    counts = totals(units)
    words = {"verified": "verified", "torchax": "through torchax", "failed": "failed", "unverified": "unverified", "skipped": "skipped"}
    return ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key])


def problems(inventory: Inventory) -> list[dict[str, str]]:
    """Files that do not parse."""
    return [{"source": file.path, "error": file.error} for file in inventory.files if file.error]


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON: what is no finite number becomes null, and is told in the detail."""
    row: dict[str, Any] = plain(verdict)
    for key in ("measured", "limit"):
        value = row[key]
        if value is not None and not math.isfinite(value):
            row[key], row["detail"] = None, f"{row['detail']} ({key}: {value})".strip()
    return row


def write_reports(context: Context, position: int) -> list[UnitReport]:
    """Write `report.json` to the run's folder, and to where `--report` says; gives the rows."""
    units = report_rows(context, position)
    text = json.dumps(report_json(context, units), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    for path in (context.folder / "report.json", *([Path(context.settings.report)] if context.settings.report else [])):
        write_text(path, text)
    return units


def write_partial(context: Context, state: RunState) -> None:
    """What is known of a run that was interrupted; nothing where there is no plan yet."""
    if (context.folder / "plan.json").exists():
        write_reports(context, state.get("position", 0))


def exit_status(units: Sequence[UnitReport], skipped: Mapping[str, str]) -> int:
    """0 where every unit that was tried is verified, and at least one is; else 1. Units that the plan skips do not count."""
    in_scope = [unit for unit in units if unit.id not in skipped]
    return 0 if in_scope and all(unit.status == "verified" for unit in in_scope) else 1
