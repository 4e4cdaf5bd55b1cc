"""Which units of an inventory are in the scope of a run, and which one a name means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.runs.state import Plan
from migrate_agent.tools.scan.plan import UnknownUnit
from migrate_agent.tools.scan.plan import plan as select
from migrate_agent.tools.types import Example, Inventory, Unit


def require_units(inventory: Inventory, root: str, programs: Sequence[str] = ()) -> None:
    """Raise `UsageError` with the reason where no unit was found, and none of these programs is there to migrate."""
    if inventory.units or programs:
        return
    broken = [file.path for file in inventory.files if file.error]
    suffix = f" ({len(broken)} files do not parse, {broken[0]} first)" if broken else ""
    if any(file.uses_torch for file in inventory.files):
        raise UsageError(f"{root} uses torch, but defines no torch.nn.Module and no function of tensor maths: nothing to migrate{suffix}")
    raise UsageError(f"{root} has no Python file that imports torch: nothing to migrate{suffix}")


def plan_scope(inventory: Inventory, modules: Sequence[str], exclude: Sequence[str], programs: Sequence[str] = ()) -> Plan:
    """The units in scope, in the inventory's order (leaf first). `programs` are scripts that `modules` may name though they define no unit.

    Raises `UsageError` on a module that is not there.
    """
    sources = {unit.source for unit in inventory.units}
    chosen = [module for module in modules if module not in programs or module in sources]
    scope = in_scope(inventory, chosen) if chosen or not modules else ()
    skipped = {unit.id: reason for unit in scope if (reason := _why_skipped(unit, exclude))}
    return Plan(tuple(unit.id for unit in scope if unit.id not in skipped), skipped)


def in_scope(inventory: Inventory, modules: Sequence[str]) -> tuple[Unit, ...]:
    """The units that `--module` names, with all that they need; every unit where it names none. Raises `UsageError` on an unknown one."""
    try:
        return select(inventory, modules)
    except UnknownUnit as error:
        raise UsageError(str(error)) from None


def with_named(inventory: Inventory, examples: Iterable[Example], modules: Sequence[str]) -> tuple[str, ...]:
    """`modules`, and the units that the examples of these and of what they need name: `ResNet(BasicBlock, [1, 1])` is built of a `BasicBlock`.

    Raises `UsageError` on a module that is not there.
    """
    wanted, rows = tuple(modules), list(examples)
    while wanted:
        inside = {unit.id for unit in in_scope(inventory, wanted)}
        further = sorted({name for row in rows if row.unit in inside for name in named_units(inventory, row)} - inside)
        if not further:
            break
        wanted = (*wanted, *further)
    return wanted


def named_units(inventory: Inventory, example: Example) -> list[str]:
    """The ids of other units that the text of an example names: of several of one name those beside its own unit, or none."""
    words = set(re.findall(r"[A-Za-z_]\w*", f"{example.setup} {example.init}"))
    source = example.unit.partition(":")[0]
    by_name: dict[str, list[Unit]] = {}
    for unit in inventory.units:
        if unit.id != example.unit and unit.name.rpartition(".")[2] in words:
            by_name.setdefault(unit.name.rpartition(".")[2], []).append(unit)
    rows = [[unit for unit in units if unit.source == source] or units for units in by_name.values()]
    return [units[0].id for units in rows if len(units) == 1]


def find_unit(inventory: Inventory, text: str) -> Unit:
    """The one unit that `FILE:NAME` names. Raises `UsageError` where there is none, or several."""
    needed = in_scope(inventory, (text,))
    source, _, name = text.partition(":")
    matches = [unit for unit in needed if unit.source == source and name in ("", unit.name)]
    if len(matches) != 1:
        raise UsageError(f"{text}: name one class, as in {matches[0].id if matches else 'model.py:GPT'}")
    return matches[0]


def needed_units(inventory: Inventory, identifier: str) -> set[str]:
    """The ids of all units that this one needs, directly or not, without itself."""
    units = {unit.id: unit for unit in inventory.units}
    needed: set[str] = set()
    waiting = [identifier]
    while waiting:
        unit = units.get(waiting.pop())
        fresh = [need for need in (unit.needs if unit else ()) if need not in needed]
        needed.update(fresh)
        waiting.extend(fresh)
    return needed - {identifier}


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
