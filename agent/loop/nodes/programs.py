"""programs: the training programs, after the modules that they use."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from migrate_agent.agent.config.json_files import read, write
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.programs import DRAFT, ROW, configured_programs, folder_of, in_scope
from migrate_agent.agent.runs.commit_message import program_message
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.programs.migrate import Migrated, migrate_program
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.types import Cause, Draft, UnitReport


def programs(context: Context, state: RunState) -> RunState:
    """Migrate each program that the configuration names, and commit those that are verified. What an earlier try left is taken as it is."""
    head, commits = state["head"], state["commits"]
    for number, program in enumerate(in_scope(configured_programs(context.config, context.original), context.settings.modules)):
        folder = folder_of(context, number)
        if not (folder / ROW).exists():
            row, draft = _migrate(context, state, program, folder)
            write(folder / DRAFT, draft)
            write(folder / ROW, row)
        row, draft = read(folder / ROW, UnitReport), read(folder / DRAFT, Draft)
        if row.status == "verified":
            commits += 1
            head = context.branch.commit(head, dict(draft.files), program_message(row, context.settings.base), commits)
            write(folder / ROW, replace(row, commit=head))
    return {"outcome": "tried", "head": head, "commits": commits}


def _migrate(context: Context, state: RunState, program: Program, folder: Path) -> tuple[UnitReport, Draft]:
    began = time.monotonic()
    settled = context.settled(state["position"])
    verified = tuple(identifier for identifier, row in settled.items() if row.status == "verified")
    # The program's own folder of the source files: others of the repository may lie beside them.
    migrated = migrate_program(
        program,
        context.original,
        context.sandbox,
        folder,
        context.config.limits.limits(),
        lambda text: context.progress.stage(program.source, text),
        verified,
        context.recording.observations,
        context.inventory.style,
        context.config.run.keep_unreached,
        context.inventory.scan_layers,
    )
    return _row(program, migrated, time.monotonic() - began), migrated.draft


def _row(program: Program, migrated: Migrated, seconds: float) -> UnitReport:
    evidence, draft = migrated.evidence, migrated.draft
    verdicts = evidence.verdicts if evidence else ()
    failed = next((verdict for verdict in verdicts if verdict.status != "pass"), None)
    reason = f"{failed.check}: {failed.detail}" if failed else migrated.reason
    cause = Cause.NONE if evidence and evidence.status == "verified" else Cause.DIFFERS if failed else Cause.HOLE
    return UnitReport(
        program.source,
        "",
        migrated.target,
        evidence.status if evidence else "unverified",
        attempts=1,
        seconds=seconds,
        verdicts=verdicts,
        reason=reason,
        cause=cause,
        holes=draft.holes,
        notes=draft.notes,
        kind="program",
    )
