"""The order of work: units leaf first, and the selection that the user asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

import networkx as nx  # type: ignore[import-untyped]  # it ships no types

from migrate_agent.tools.types import Inventory, Unit


class UnknownUnit(KeyError):
    """A `--module FILE[:NAME]` that names nothing. Its text is one line, with near matches where there are some."""

    def __str__(self) -> str:
        return str(self.args[0])


def leaf_first(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The units, each after all units that it needs; ties keep the order of `units`.

    Units that need each other in a circle come together, in the order of `units`. Needs outside of `units` do not count.
    """
    return tuple(unit for circle in dependency_groups(units) for unit in circle)


def dependency_groups(units: Sequence[Unit]) -> tuple[tuple[Unit, ...], ...]:
    """The units leaf first, in groups of units that need each other in a circle."""
    index = {unit.id: number for number, unit in enumerate(units)}
    graph = nx.DiGraph()
    graph.add_nodes_from(index.values())
    graph.add_edges_from((index[need], index[unit.id]) for unit in units for need in unit.needs if need in index)
    groups = nx.condensation(graph)
    members = {group: sorted(groups.nodes[group]["members"]) for group in groups}
    # Ties by the first member's index make the order the same on every run.
    order = nx.lexicographical_topological_sort(groups, key=lambda group: members[group][0])
    return tuple(tuple(units[number] for number in members[group]) for group in order)


def plan(inventory: Inventory, selected: Sequence[str] = ()) -> tuple[Unit, ...]:
    """The units in scope, leaf first: all of them, or those that `selected` names (`FILE` or `FILE:NAME`) with all that these need.

    Raises `UnknownUnit` for a file or class that is not there, or a file with nothing to migrate.
    """
    if not selected:
        return inventory.units
    by_id = {unit.id: unit for unit in inventory.units}
    open_ones = [unit.id for text in selected for unit in _matching_units(inventory, text)]
    chosen: set[str] = set()
    while open_ones:
        identifier = open_ones.pop()
        if identifier not in chosen:
            chosen.add(identifier)
            open_ones.extend(need for need in by_id[identifier].needs if need in by_id)
    return tuple(unit for unit in inventory.units if unit.id in chosen)


def _matching_units(inventory: Inventory, text: str) -> Iterable[Unit]:
    source, _, name = text.partition(":")
    source = _relative(inventory.root, source)
    there = [unit for unit in inventory.units if unit.source == source]
    matches = [unit for unit in there if not name or unit.name == name]
    if not matches:
        raise UnknownUnit(_explain(inventory, text, source, name, there))
    return matches


def _relative(root: Path, source: str) -> str:
    path = PurePosixPath(source.replace("\\", "/"))
    if path.is_absolute():
        for base in (root, root.resolve()):
            if path.is_relative_to(base.as_posix()):
                return str(path.relative_to(base.as_posix()))
    return str(path)


def _explain(inventory: Inventory, text: str, source: str, name: str, there: Sequence[Unit]) -> str:
    if not text.strip():
        return "--module is empty: it takes FILE or FILE:NAME"
    file = next((file for file in inventory.files if file.path == source), None)
    if file is None:
        near = [unit.id for unit in inventory.units if unit.name == text]
        near = near or get_close_matches(source, [file.path for file in inventory.files], n=3)
        return f"no Python file {source} in the repository{_suggestion(near)}"
    if file.error:
        return f"{source} cannot be read ({file.error})"
    if not there:
        near = get_close_matches(text, [unit.id for unit in inventory.units], n=3)
        return f"{source} has no module and no function to migrate{_suggestion(near)}"
    names = [unit.name for unit in there]
    elsewhere = [unit.id for unit in inventory.units if unit.name == name]
    near = [f"{source}:{match}" for match in get_close_matches(name, names, n=3)]
    return f"{source} has no module or function {name} to migrate{_suggestion(near or elsewhere[:3] or [f'{source}:{match}' for match in names[:3]])}"


def _suggestion(near: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(near)}?" if near else ""
