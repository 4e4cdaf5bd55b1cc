"""Which names a statement uses at once, while its file is imported."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.rewrite.assemble.import_errors import aliased_name, names_bound, names_used


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("y = f(x)", {"f", "x"}),
        ("y = x", set()),  # only stored
        ("TABLE = {'a': x, k: g(1)}", {"k", "g"}),
        ("y = dict(a=x)", set()),
        ("y = tuple(x)", {"x"}),  # iterated over
        ("y = partial(x, z)", set()),
        ("def f(a=x, b=g()):\n    return h()", {"g"}),
        ("@d\ndef f():\n    pass", {"d"}),
        ("class C(Base):\n    y = g()\n\n    def f(self):\n        return h()", {"Base", "g"}),
        ("f = lambda a=x: h()", set()),
    ],
)
def test_names_used(source: str, expected: set[str]) -> None:
    assert names_used(ast.parse(source).body) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [("def f(): pass", ("f",)), ("a = b = 1", ("a", "b")), ("a: int = 1", ("a",)), ("a.b = 1", ()), ("f()", ())],
)
def test_names_bound(source: str, expected: tuple[str, ...]) -> None:
    assert names_bound(ast.parse(source).body[0]) == expected


@pytest.mark.parametrize(("source", "expected"), [("y = x", "x"), ("y = x.z", ""), ("y = x\nz = x", "")])
def test_aliased_name(source: str, expected: str) -> None:
    assert aliased_name(ast.parse(source).body) == expected
