"""What ran of a file is counted, statement by statement, and nothing else of it changes."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.tools.harness.common import reach

TEXT = '''
"""A file."""
from __future__ import annotations
import enum
class Kind(enum.Enum):
    A = 1
def outer(x):
    """Says something."""
    if x > 1:
        y = x
    else:
        y = x and (3 if x else 4)
    def inner(z):
        return z
    f = lambda: inner(y)
    try:
        return f()
    finally:
        del f
'''


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    reach.count(tmp_path)
    yield tmp_path
    sys.modules.pop("counted_file", None)


def test_places_that_ran_are_counted_by_file(counted: Path) -> None:
    (counted / "counted_file.py").write_text(TEXT)
    module = importlib.import_module("counted_file")
    assert module.outer.__doc__ == "Says something."
    reach.take()
    assert module.outer(2) == 2
    places = reach.places(ast.parse(TEXT))
    ran = [places[number] for number in reach.by_file(reach.take())["counted_file.py"]]
    assert [place.line for place in ran if place.kind == "statement"] == [9, 10, 14, 15, 16, 17, 19]
    assert [place.line for place in ran if place.kind == "part"] == [15]
    assert [(place.line, place.owner) for place in places if place not in ran] == [
        (12, "outer"),
        (12, "outer"),
        (12, "outer"),
        (12, "outer"),
    ]


def test_sets_survive_json_and_are_joined(counted: Path) -> None:
    (counted / "counted_file.py").write_text("def f(x):\n    if x:\n        return 1\n    return 2\n")
    module = importlib.import_module("counted_file")
    sets = {}
    for name, value in (("a", True), ("b", False), ("c", True)):
        module.f(value)
        sets[name] = reach.take()
    row = reach.told(sets)
    assert len(row["sets"]) == 2  # type: ignore[arg-type]
    heard = reach.heard(row)
    assert heard["a"] == heard["c"] == {"counted_file.py": frozenset({0, 1})}
    assert reach.union(heard.values()) == {"counted_file.py": frozenset({0, 1, 2})}


def test_paths_are_those_of_the_tree(counted: Path) -> None:
    reach.count(counted, "src")
    (counted / "counted_file.py").write_text("def f():\n    return 1\n")
    importlib.import_module("counted_file").f()
    assert reach.by_file(reach.take()) == {"src/counted_file.py": [0]}
