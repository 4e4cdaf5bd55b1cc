"""scan: read the base commit's code, without importing it."""

from __future__ import annotations

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import write
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.runs.state import RunState
from migrate_agent.tools.types import Inventory


def scan(context: Context, state: RunState) -> RunState:
    """Write `inventory.json`. Raises `UsageError` where there is nothing to migrate."""
    context.progress.stage("", "scanning")
    context.repository.export(context.settings.base, context.original)
    inventory = context.services.scan(context.original)
    require_units(inventory, context.settings.root)
    write(context.folder / "inventory.json", inventory)
    for file in inventory.files:
        if file.error:
            context.progress.warn(f"{file.path}: {file.error} (left out; the other files go on)")
    return {"outcome": "scanned"}


def require_units(inventory: Inventory, root: str) -> None:
    """Raise `UsageError` with the reason where no unit was found."""
    if inventory.units:
        return
    broken = [file.path for file in inventory.files if file.error]
    suffix = f" ({len(broken)} files do not parse, {broken[0]} first)" if broken else ""
    if any(file.uses_torch for file in inventory.files):
        raise UsageError(f"{root} uses torch, but defines no torch.nn.Module class: nothing to migrate{suffix}")
    raise UsageError(f"{root} has no Python file that imports torch: nothing to migrate{suffix}")
