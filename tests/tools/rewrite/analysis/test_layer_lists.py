"""The first layers of sequences that constructors put together, on all paths through them."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.rewrite.analysis.inplace_effects.layer_lists import Constant, Front, sequence_fronts

CASES: list[tuple[str, dict[str, Constant], set[str]]] = [
    ("self.s = Sequential(a(), b(), c())", {}, {"a b c"}),
    ("r = [a()]\nif flag:\n    r.append(b())\nself.s = Sequential(*r)", {}, {"a", "a b"}),
    ("r = [a()]\nif flag:\n    r.append(b())\nself.s = Sequential(*r)", {"flag": True}, {"a b"}),
    ("r = []\nif flag:\n    r.append(a())\nif not flag:\n    r += [b()]\nself.s = Sequential(*r)", {}, {"a", "b"}),
    (
        "r = []\nif flag:\n    r.append(a())\nflag = other()\nif not flag:\n    r.append(b())\nself.s = Sequential(*r)",
        {},
        {"", "a", "b", "a b"},
    ),
    ("r = [a(), b()]\nfor i in range(n):\n    r.append(c())\nself.s = Sequential(*r[1:])", {}, {"b", "b c", "b c c", "b c c …"}),
    ("r = [a()]\nif kind == 'x':\n    r.extend([b(), c()])\nself.s = Sequential(*r)", {"kind": "y"}, {"a"}),
    ("head = a()\nr = [head] + [b()]\nself.s = Sequential(*r)", {}, {"a b"}),
    # What other code may have changed, or is no list that is written out, is unknown.
    ("r = [a()]\nchange(r)\nself.s = Sequential(*r)", {}, {"?"}),
    ("r = [a()]\nq = r\nq.append(b())\nself.s = Sequential(*r)", {}, {"?"}),
    ("r = [a()]\nr.insert(0, b())\nself.s = Sequential(*r)", {}, {"?"}),
    ("r = make()\nself.s = Sequential(*r)", {}, {"?"}),
    ("r = [a()]\nfor i in x:\n    if i:\n        break\n    r.append(b())\nself.s = Sequential(*r)", {}, {"?"}),
    ("r = [a()]\nif flag:\n    self.s = Sequential(*r)\nelse:\n    self.s = None", {}, {"a", "?"}),
]


def _said(front: Front | None) -> str:
    if front is None:
        return "?"
    names = [layer.func.id for layer in front.layers if isinstance(layer, ast.Call) and isinstance(layer.func, ast.Name)]
    return " ".join(names if front.whole else [*names, "…"])


@pytest.mark.parametrize(("body", "given", "expected"), CASES)
def test_fronts(body: str, given: dict[str, Constant], expected: set[str]) -> None:
    method = ast.parse("def f(self, flag, n, kind, x):\n" + "".join(f"    {line}\n" for line in body.splitlines())).body[0]
    assert isinstance(method, ast.FunctionDef)
    fronts = sequence_fronts(
        method,
        lambda node: isinstance(node, ast.Attribute) and node.attr == "s" and isinstance(node.ctx, ast.Store),
        lambda node: isinstance(node, ast.Name) and node.id == "Sequential",
        given,
    )
    assert {_said(front) for front in fronts} == expected
