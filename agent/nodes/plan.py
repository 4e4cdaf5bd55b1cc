"""plan: which units are in scope, and which of them are tried."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch

from migrate_agent.agent.context import Context
from migrate_agent.agent.errors import UsageError
from migrate_agent.agent.state import Plan, RunState
from migrate_agent.agent.store import write
from migrate_agent.tools.types import Inventory, Unit


def plan(context: Context, state: RunState) -> RunState:
    """Write `plan.json`."""
    decided = decide(context.inventory, context.settings.modules, context.config.run.exclude)
    write(context.folder / "plan.json", decided)
    context.progress.total = len(decided.order)
    context.progress.note(f"{len(decided.order)} units to migrate, {len(decided.skipped)} to leave, on branch {context.settings.branch}")
    return {"outcome": "planned", "position": -1, "head": context.settings.base, "commits": 0}


def decide(inventory: Inventory, modules: Sequence[str], exclude: Sequence[str]) -> Plan:
    """The units in scope, in the inventory's order (leaf first). Raises `UsageError` on a module that is not there."""
    scope = in_scope(inventory, modules)
    skipped = {unit.id: reason for unit in scope if (reason := _why_skipped(unit, exclude))}
    return Plan(tuple(unit.id for unit in scope if unit.id not in skipped), skipped)


def in_scope(inventory: Inventory, modules: Sequence[str]) -> list[Unit]:
    """The units that `--module` names, with all that they need; every unit where it names none."""
    if not modules:
        return list(inventory.units)
    wanted = {unit.id for text in modules for unit in find(inventory, text)}
    needed = wanted.union(*(closure(inventory, identifier) for identifier in wanted))
    return [unit for unit in inventory.units if unit.id in needed]


def find(inventory: Inventory, text: str) -> list[Unit]:
    """The units that `FILE` or `FILE:NAME` names. Raises `UsageError` with the nearest names where there is none."""
    path, _, name = text.partition(":")
    source = os.path.normpath(path).replace(os.sep, "/")
    found = [unit for unit in inventory.units if unit.source == source and name in ("", unit.name)]
    if not found:
        raise UsageError(f"{text}: {_missing(inventory, source, name)}")
    return found


def _missing(inventory: Inventory, source: str, name: str) -> str:
    broken = [file.error for file in inventory.files if file.path == source and file.error]
    if broken:
        return f"the file does not parse: {broken[0]}"
    near = _near(inventory, source, name)
    hint = f"did you mean {' or '.join(near)}?" if near else "`migrate-agent scan` lists the modules"
    known = any(file.path == source for file in inventory.files)
    return f"no such module in {source}: {hint}" if known else f"no such file in the commit: {hint}"


def _near(inventory: Inventory, source: str, name: str) -> list[str]:
    here = {unit.name: unit.id for unit in inventory.units if unit.source == source}
    anywhere = [unit.id for unit in inventory.units if name and unit.name == name]
    close = [here[match] for match in difflib.get_close_matches(name, here, n=3, cutoff=0.4)]
    full = difflib.get_close_matches(f"{source}:{name}", [unit.id for unit in inventory.units], n=3, cutoff=0.5)
    files = difflib.get_close_matches(source, sorted({unit.source for unit in inventory.units}), n=3, cutoff=0.5)
    return list(dict.fromkeys([*close, *anywhere] or full or files))[:3]


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
