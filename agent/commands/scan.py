"""`migrate-agent scan`: tables, or JSON, of what is there."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from migrate_agent.agent.config.config import load_config
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import plain
from migrate_agent.agent.loop.scope import plan_scope, require_units
from migrate_agent.agent.runs.progress import stdout
from migrate_agent.agent.runs.tables import finding_table, inventory_table, problem_table, program_table
from migrate_agent.tools.programs.profile import profiles
from migrate_agent.tools.scan import scan as read_repository
from migrate_agent.tools.scan.adopt import adopted_packages
from migrate_agent.tools.types import Inventory


def scan(root: Path, as_json: bool) -> None:
    """Print the inventory of a folder. Raises `UsageError` where it is none, or holds nothing to migrate."""
    if not root.is_dir():
        raise UsageError(f"{root} is not a folder")
    config = load_config(root)
    inventory = read_repository(root.resolve())
    require_units(inventory, str(root.resolve()), [program.source for program in profiles(inventory)])
    order = plan_scope(inventory, (), config.run.exclude).order
    if as_json:
        programs = [plain(program) for program in profiles(inventory)]
        print(json.dumps({"version": 1, "order": order, **plain(inventory), "programs": programs}, indent=1, ensure_ascii=False))
    else:
        _show(stdout(), inventory, order)


def _show(console: Console, inventory: Inventory, order: tuple[str, ...]) -> None:
    broken = [file for file in inventory.files if file.error]
    skipped = len(inventory.units) - len(order)
    console.print(inventory_table(inventory.units))
    programs = profiles(inventory)
    for title, rows, table in (
        ("Programs:", programs, program_table(programs)),
        ("No model maths:", inventory.findings, finding_table(inventory.findings)),
        ("Files left out:", broken, problem_table(broken)),
    ):
        if rows:
            console.print(Text(f"\n{title}"), table)
    for line in adopted_packages(inventory.files):
        console.print(Text(f"\nMirrored along, since it needs torch: {line}"))
    own = [file for file in inventory.files if not file.adopted]
    files = f"{len(own)} files, {sum(file.uses_torch for file in own)} of them use torch"
    console.print(Text(f"\n{files}; {len(order)} units to migrate, {skipped} to leave, {len(broken)} files left out"))
