"""plan: which units are in scope, and which of them are tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatch

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import write
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.runs.state import Plan, RunState
from migrate_agent.tools.scan.plan import UnknownUnit
from migrate_agent.tools.scan.plan import plan as select
from migrate_agent.tools.types import Inventory, Unit


def plan(context: Context, state: RunState) -> RunState:
    """Write `scope.json`."""
    decided = decide(context.inventory, context.settings.modules, context.config.run.exclude)
    write(context.folder / "scope.json", decided)
    context.progress.total = len(decided.order)
    context.progress.note(f"{len(decided.order)} units to migrate, {len(decided.skipped)} to leave, on branch {context.settings.branch}")
    return {"outcome": "planned", "position": -1, "head": context.settings.base, "commits": 0}


def decide(inventory: Inventory, modules: Sequence[str], exclude: Sequence[str]) -> Plan:
    """The units in scope, in the inventory's order (leaf first). Raises `UsageError` on a module that is not there."""
    scope = in_scope(inventory, modules)
    skipped = {unit.id: reason for unit in scope if (reason := _why_skipped(unit, exclude))}
    return Plan(tuple(unit.id for unit in scope if unit.id not in skipped), skipped)


def in_scope(inventory: Inventory, modules: Sequence[str]) -> tuple[Unit, ...]:
    """The units that `--module` names, with all that they need; every unit where it names none. Raises `UsageError` on an unknown one."""
    try:
        return select(inventory, modules)
    except UnknownUnit as error:
        raise UsageError(str(error)) from None


def find(inventory: Inventory, text: str) -> Unit:
    """The one unit that `FILE:NAME` names. Raises `UsageError` where there is none, or several."""
    needed = in_scope(inventory, (text,))
    source, _, name = text.partition(":")
    found = [unit for unit in needed if unit.source == source and name in ("", unit.name)]
    if len(found) != 1:
        raise UsageError(f"{text}: name one class, as in {found[0].id if found else 'model.py:GPT'}")
    return found[0]


def closure(inventory: Inventory, identifier: str) -> set[str]:
    """The ids of all units that this one needs, directly or not, without itself."""
    known = {unit.id: unit for unit in inventory.units}
    found: set[str] = set()
    waiting = [identifier]
    while waiting:
        unit = known.get(waiting.pop())
        fresh = [need for need in (unit.needs if unit else ()) if need not in found]
        found.update(fresh)
        waiting.extend(fresh)
    return found - {identifier}


def excluded(source: str, patterns: Iterable[str]) -> bool:
    """Whether a glob of `[run] exclude` matches this path, or a folder above it."""
    parts = source.split("/")
    above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return any(fnmatch(path, pattern.rstrip("/")) for pattern in patterns for path in above)


def _why_skipped(unit: Unit, exclude: Sequence[str]) -> str:
    if excluded(unit.source, exclude):
        return "excluded in the configuration ([run] exclude)"
    if unit.strategy in ("keep", "redesign"):
        return f"{unit.strategy}: {unit.reason}" if unit.reason else unit.strategy
    return ""
