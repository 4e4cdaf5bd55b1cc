"""The top-level models of a repository: the module classes that no other class of it constructs."""

from __future__ import annotations

import ast

from migrate_agent.tools.types import Inventory, Unit


def top_level(inventory: Inventory) -> frozenset[str]:
    """The ids of the classes that no other unit constructs, itself or through a helper. A class that others only inherit from counts too."""
    units = {unit.id: unit for unit in inventory.units}
    built = {need for unit in units.values() for need in unit.needs if need in units and not _only_inherits(inventory, unit, units[need])}
    return frozenset(unit.id for unit in inventory.units if unit.kind == "module") - built


def _only_inherits(inventory: Inventory, unit: Unit, parent: Unit) -> bool:
    """Whether the class names this parent among its bases, and nowhere else."""
    tree = ast.parse((inventory.root / unit.source).read_text(encoding="utf-8"))
    definition = next((node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.lineno <= unit.line <= _end(node)), None)
    if definition is None:
        return False
    name = parent.name.rpartition(".")[2]
    body = [node for statement in definition.body for node in ast.walk(statement)]
    return any(_names(base, name) for base in definition.bases) and not any(_names(node, name) for node in body)


def _end(node: ast.ClassDef) -> int:
    return node.end_lineno or node.lineno


def _names(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)
