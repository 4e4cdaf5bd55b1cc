"""The rooms of `tools` import each other in one direction."""

from __future__ import annotations

import pytest

from migrate_agent.evals.bench.readability import import_graph, product_files

PREFIX = "migrate_agent.tools."
MAY_IMPORT = {
    "types": "",
    "discovery": "",
    "extras": "",
    "removed_names": "",
    "weights": "",
    "leftovers": "",
    "compare": "",
    "manifest": "",
    "scan": "types",
    "harness": "types weights removed_names",
    "closure": "types scan",
    "rewrite": "types discovery removed_names scan closure",
    "import_closure": "types scan rewrite",
    "record": "types removed_names scan harness rewrite import_closure",
    "checkpoint": "types weights harness",
    "portable": "types extras scan harness rewrite",
    "assess": "types portable",
    "verify": "types discovery leftovers scan harness rewrite closure import_closure portable",
    "programs": "types discovery weights removed_names scan harness rewrite record checkpoint verify vendored",
}
"""Room (a folder or file of `tools`) → the others that it may import, inside functions too. Rooms stand below those that they import."""
COPIED = ("vendored", "kernels")
"""Rooms whose files are copied into the user's tree. They have a rule of their own; only the vendored files of `programs` build on them."""


@pytest.fixture(scope="module")
def imports() -> list[tuple[str, str]]:
    """Each import of a module of `tools` by another one, as dotted names below `tools`."""
    edges = import_graph(product_files(["tools"]), top_level=False).edges
    return [(importer.removeprefix(PREFIX), imported.removeprefix(PREFIX)) for importer, imported in edges]


def room(name: str) -> str:
    return name.partition(".")[0]


def test_each_room_has_a_rule(imports: list[tuple[str, str]]) -> None:
    assert {room(name) for edge in imports for name in edge} - MAY_IMPORT.keys() - set(COPIED) == set()


def test_rooms_import_those_above_them() -> None:
    rooms = list(MAY_IMPORT)
    assert [
        (name, other)
        for name, others in MAY_IMPORT.items()
        for other in others.split()
        if other not in COPIED and rooms.index(other) >= rooms.index(name)
    ] == []


def test_no_room_imports_another_without_leave(imports: list[tuple[str, str]]) -> None:
    wrong = [
        (importer, imported)
        for importer, imported in imports
        if room(importer) in MAY_IMPORT and room(importer) != room(imported) and room(imported) not in MAY_IMPORT[room(importer)].split()
    ]
    assert wrong == []
