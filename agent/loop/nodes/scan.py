"""scan: read the base commit's code, without importing it."""

from __future__ import annotations

from migrate_agent.agent.config.json_files import write
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.programs import configured_programs
from migrate_agent.agent.loop.scope import require_units
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.scan.main_globals import lift_main_globals


def scan(context: Context, state: RunState) -> RunState:
    """Write `inventory.json`. Raises `UsageError` where there is nothing to migrate."""
    context.progress.stage("", "scanning")
    context.repository.export(context.settings.base, context.original, prepare=lift_main_globals)
    inventory = context.services.scanned(context.original, context.config)
    require_units(inventory, context.settings.root, [program.source for program in configured_programs(context.config, context.original)])
    write(context.folder / "inventory.json", inventory)
    for file in inventory.files:
        if file.error:
            context.progress.warn(f"{file.path}: {file.error} (left out; the other files go on)")
    return {"outcome": "scanned"}
