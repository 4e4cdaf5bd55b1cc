"""The rooms of `agent` import each other in one direction, and no two of its modules import each other."""

from __future__ import annotations

import pytest

from migrate_agent.evals.bench.readability import circles, import_graph, product_files

ORDER = ("config", "repository", "runs", "model forge cluster", "loop", "pages pr tpu", "commands", "cli")
"""Rooms from the lowest to the highest; a room may import itself and lower ones."""

LOOP_ORDER = ("", "nodes", "graph", "run session")
"""The same within `agent/loop`: "" is every module that is not named here."""

PREFIX = "migrate_agent.agent."


def level(name: str, order: tuple[str, ...]) -> int:
    """The level of a room, that of "" where no level names it."""
    return next((number for number, rooms in enumerate(order) if name in rooms.split()), order.index("") if "" in order else -1)


@pytest.fixture(scope="module")
def imports() -> list[tuple[list[str], list[str]]]:
    """Each import within `agent`, inside functions too, as the parts of both names below `agent`."""
    edges = import_graph(product_files(["agent"]), top_level=False).edges
    return [(importer.removeprefix(PREFIX).split("."), imported.removeprefix(PREFIX).split(".")) for importer, imported in edges]


def test_each_room_has_a_level(imports: list[tuple[list[str], list[str]]]) -> None:
    assert {parts[0] for edge in imports for parts in edge if level(parts[0], ORDER) < 0} == set()


def test_rooms_import_lower_ones(imports: list[tuple[list[str], list[str]]]) -> None:
    upward = [
        (".".join(importer), ".".join(imported))
        for importer, imported in imports
        if importer[0] != imported[0] and level(importer[0], ORDER) <= level(imported[0], ORDER)
    ]
    assert upward == []


def test_what_nodes_use_imports_no_node(imports: list[tuple[list[str], list[str]]]) -> None:
    upward = [
        (".".join(importer), ".".join(imported))
        for importer, imported in imports
        if importer[0] == imported[0] == "loop" and level(importer[1], LOOP_ORDER) < level(imported[1], LOOP_ORDER)
    ]
    assert upward == []


def test_no_modules_import_each_other() -> None:
    assert circles(product_files(["agent", "prompts", "sandbox"])) == []
