"""The graph of what needs what, as inline SVG: a box a unit, in columns by depth, each a link to its row in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx  # type: ignore[import-untyped]
from markupsafe import Markup, escape

from migrate_agent.tools.types import Unit

WIDTH, HEIGHT, GAP_X, GAP_Y, PAD = 190, 26, 60, 10, 12
SHOWN = 24
"""Characters of a name that a box has room for; the whole name is in its title."""
Position = tuple[int, int]


def graph(units: Sequence[Unit]) -> Markup:
    """Leaves stand left; "" without units."""
    if not units:
        return Markup("")
    positions = _places(units)
    width = PAD * 2 + max(x for x, _ in positions.values()) + WIDTH
    height = PAD * 2 + max(y for _, y in positions.values()) + HEIGHT
    edges = "".join(_edge(positions[need], positions[unit.id], need, unit.id) for unit in units for need in unit.needs if need in positions)
    boxes = "".join(_box(unit, positions[unit.id]) for unit in units)
    return Markup(
        f'<svg id="graph" width="{width}" height="{height}" role="img" aria-label="units and what they need">{edges}{boxes}</svg>'
    )


def anchor(unit: str) -> str:
    """The id of a unit's row."""
    return "unit-" + "".join(letter if letter.isalnum() else f"-{ord(letter):x}-" for letter in unit)


def _places(units: Sequence[Unit]) -> Mapping[str, Position]:
    depths = _depths(units)
    rows: dict[int, int] = {}
    positions: dict[str, Position] = {}
    for unit in units:
        column = depths[unit.id]
        row = rows[column] = rows.get(column, -1) + 1
        positions[unit.id] = (column * (WIDTH + GAP_X), row * (HEIGHT + GAP_Y))
    return positions


def _depths(units: Sequence[Unit]) -> Mapping[str, int]:
    """One more than the deepest of what a unit needs; units that need each other share a depth."""
    graph = nx.DiGraph()
    graph.add_nodes_from(unit.id for unit in units)
    graph.add_edges_from((need, unit.id) for unit in units for need in unit.needs if need in graph)
    condensed = nx.condensation(graph)
    depth: dict[int, int] = {}
    for component in nx.topological_sort(condensed):
        depth[component] = max((depth[before] + 1 for before in condensed.predecessors(component)), default=0)
    return {name: depth[component] for name, component in condensed.graph["mapping"].items()}


def _edge(start: Position, end: Position, need: str, unit: str) -> str:
    x1, y1, x2, y2 = start[0] + PAD + WIDTH, start[1] + PAD + HEIGHT // 2, end[0] + PAD, end[1] + PAD + HEIGHT // 2
    path = f"M{x1} {y1}C{x1 + GAP_X // 2} {y1} {x2 - GAP_X // 2} {y2} {x2} {y2}"
    return f'<path class="edge" data-from="{anchor(need)}" data-to="{anchor(unit)}" d="{path}" fill="none"/>'


def _box(unit: Unit, position: Position) -> str:
    x, y = position[0] + PAD, position[1] + PAD
    name = unit.name if len(unit.name) <= SHOWN else f"{unit.name[: SHOWN - 1]}…"
    title = f"{unit.id}: {unit.strategy}" + (f": {unit.reason}" if unit.reason else "")
    return (
        f'<a href="#{anchor(unit.id)}" data-unit="{anchor(unit.id)}"><title>{escape(title)}</title>'
        f'<rect class="{unit.strategy}" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>'
        f'<text x="{x + 8}" y="{y + 17}">{escape(name)}</text></a>'
    )
