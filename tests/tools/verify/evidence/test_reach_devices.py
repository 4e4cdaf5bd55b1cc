"""What the check `reach` takes for a move to another device, which a port leaves out."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.verify.evidence.reach import _moves_device


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("x = x.cuda()", True),
        ("self.x = self.x.cpu()", True),
        ("x = y.cuda()", False),
        ("x = x.cuda() + 1", False),
        ("x = x.double()", False),
        ("x.cuda()", False),
    ],
)
def test_moves_are_told_from_maths(text: str, moves: bool) -> None:
    assert _moves_device(ast.parse(text).body[0]) == moves
