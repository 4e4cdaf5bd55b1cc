"""Which value of a starred assignment belongs to which target."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.rewrite.analysis.unpacking import drop_elements, matching_index, star_flags


@pytest.mark.parametrize(
    ("values", "targets", "index", "expected"),
    [
        ("*x.shape, y", "a, b, c", 2, 1),  # counted from the end
        ("*x.shape, y", "a, b, c", 0, None),  # `a` comes from the spread value
        ("x, *y", "a, b, c", 0, 0),
        ("x, y", "a, *b", 0, 0),
        ("x, *y, z", "a, *b, c", 2, 2),
    ],
)
def test_matching_index(values: str, targets: str, index: int, expected: int | None) -> None:
    flags = []
    for text in (values, targets):
        node = cst.parse_expression(text)
        assert isinstance(node, cst.Tuple)
        flags.append(star_flags(node))
    assert matching_index(flags[0], flags[1], index) == expected


@pytest.mark.parametrize(
    ("source", "targets", "values", "expected"),
    [
        ("a, b = x, y", {1}, {1}, "a = x"),
        ("a, b, c = x, y, z", {0}, {0}, "b, c = y, z"),
        ("b, *_, device = *x.shape, x.device", {2}, {1}, "b, *_ = x.shape"),
        ("a, b = x, y", set(), set(), "a, b = x, y"),
    ],
)
def test_dropping_elements(source: str, targets: set[int], values: set[int], expected: str) -> None:
    line = cst.parse_statement(source)
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assign)
    assert cst.Module([]).code_for_node(drop_elements(line.body[0], targets, values)) == expected
