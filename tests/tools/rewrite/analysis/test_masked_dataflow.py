"""Rows that a mask selects are followed to where the same mask takes the results, and given up where anything else sees them."""

from __future__ import annotations

import ast
import textwrap
from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.masked_dataflow import NOTHING, MaskedRows, masked_rows
from migrate_agent.tools.types import Observed

MASK, OTHER = Observed(("tensor",), ((5,),), ("bool",)), Observed(("tensor",), ((5,),), ("bool",))
ROWS, NUMBER, VECTOR = (Observed(("tensor",), (shape,), ("float32",)) for shape in ((3, 4), (), (4,)))
WHOLE = Observed(("tensor",), ((5, 4),), ("float32",))
FACTS = {
    **dict.fromkeys(("mask", "other", "rows_mask"), MASK),
    **dict.fromkeys(("x", "y", "out", "w"), WHOLE),
    **dict.fromkeys(
        ("x[mask]", "x[other]", "y[mask]", "f(x[mask])", "f(h)", "h", "h * 2", "h + x[other]", "x[mask] * h", "softmax(h, dim=1)"), ROWS
    ),
    **dict.fromkeys(("softmax(h, dim=0)", "h.flip(0)"), ROWS),
    **dict.fromkeys(("h.mean()", "h.sum()"), NUMBER),
    **dict.fromkeys(("h.mean(0)", "h[0]"), VECTOR),
    **dict.fromkeys(("h.shape[0]", "len(h)", "h.numel()"), Observed(("int",))),
}


def _analysis(body: str) -> MaskedRows:
    text = "def f(x, y, out, mask, other, f):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    tree, lines = ast.parse(text), text.splitlines()
    facts = Facts(
        {span_of(n, lines): FACTS[t] for n in ast.walk(tree) if isinstance(n, ast.expr) and (t := ast.unparse(n)) in FACTS},
        {},
    )
    return masked_rows(cast(Any, SimpleNamespace(lines=lines)), facts, cast(ast.FunctionDef, tree.body[0]), lambda dotted: False)


@pytest.mark.parametrize(
    "body",
    [
        "out[mask] = f(x[mask])",
        "h = x[mask]\nh = f(h)\nout[mask] = h * 2",
        "h = x[mask]\nout[mask, :] = softmax(h, dim=1)",
        "h = x[mask]\nh *= 2\nout[mask] += h",
        "for _ in range(3):\n    h = f(x[mask])\n    out[mask] = h",
    ],
)
def test_rows_that_only_their_mask_takes(body: str) -> None:
    rows = _analysis(body)
    assert rows.reads and rows.writes


@pytest.mark.parametrize(
    "body",
    [
        "h = x[mask]\nout[mask] = h\nreturn out, h",
        "h = x[mask]\nout[mask] = h\nreturn h.mean()",
        "h = x[mask]\nout[mask] = h / h.shape[0]",
        "h = x[mask]\nout[mask] = h * len(h)",
        "h = x[mask]\nout[mask] = softmax(h, dim=0)",
        "h = x[mask]\nout[mask] = h.flip(0)",
        "h = x[mask]\nout[mask] = h - h.mean(0)",
        "h = x[mask]\nout[mask] = h[0]",
        "h = x[mask]\nmask = other\nout[mask] = h",
        "h = x[mask]\nout[other] = h",
        "h = x[mask]\nout[mask] = h + x[other]",
        "h = x[mask]\nresults.append(h)\nout[mask] = h",
        "h = x[mask]\nself.h = h\nout[mask] = h",
        "h = x[mask]\nif flag:\n    h = y\nout[mask] = h",
        "h = x[mask]\nif h.sum() > 0:\n    out[mask] = h",
        "h = x[mask]\nout[mask] = [f(row) for row in h]",
    ],
)
def test_rows_that_something_else_sees(body: str) -> None:
    assert not _analysis(body).writes


@pytest.mark.parametrize(
    ("test", "dropped"),
    [("mask.any()", True), ("mask.sum() > 0", True), ("other.any()", False), ("x.sum() > 0", False), ("mask.all()", False)],
)
def test_only_a_question_for_the_rows_themselves_is_dropped(test: str, dropped: bool) -> None:
    assert bool(_analysis(f"if {test}:\n    out[mask] = f(x[mask])").guards) is dropped


def test_a_guard_that_does_more_is_kept() -> None:
    rows = _analysis("if mask.any():\n    out[mask] = f(x[mask])\n    count = 1\nreturn count")
    assert rows.writes and not rows.guards
    assert _analysis("return x") == NOTHING
