"""Tabs here and spaces there: the text has spaces alone, and what was observed is found where the code stands now."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from migrate_agent.tools.scan.indentation import in_spaces, moved_by
from migrate_agent.tools.types import Observed, Span

MIXED = 'def f(d):\n    for x in d:\n    \tif x:\n            y = [\n\t1]\n    \t# told\n    \ts = """\n\tkept"""\n    return y, s\n'
SPACES = 'def f(d):\n    for x in d:\n        if x:\n            y = [\n\t1]\n        # told\n        s = """\n\tkept"""\n    return y, s\n'


def test_what_libcst_cannot_read() -> None:
    with pytest.raises(cst.ParserSyntaxError):
        cst.parse_module(MIXED)
    text, moved = in_spaces(MIXED)
    assert text == SPACES and moved == {3: 3, 6: 3, 7: 3}
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(MIXED)) and cst.parse_module(text).code == text


@pytest.mark.parametrize(
    "text", ["if a:\n\tb = 1\n\tif b:\n\t\tc = 2\n", "if a:\n    b = '''\n\t'''\n", "if a:\n    b = (\n\t1)\n", "if (\n", ""]
)
def test_what_is_indented_in_one_way_stays(text: str) -> None:
    assert in_spaces(text) == (text, {})


def test_observations_move_with_the_code() -> None:
    fact = Observed(("tensor",))
    moved = moved_by({Span(3, 5, 4, 3): fact, Span(2, 4, 2, 9): fact}, {3: 3})
    assert moved == {Span(3, 8, 4, 3): fact, Span(2, 4, 2, 9): fact}
