"""Templates: arguments in, arguments left out, parentheses."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.rewrite.tables.templates import Missing, fill

CASES = [
    ("jnp.sum({x}, axis={dim})", {"x": "a"}, {}, "jnp.sum(a)"),
    ("jnp.sum({x}, axis={dim})", {"x": "a", "dim": "-1"}, {}, "jnp.sum(a, axis=-1)"),
    ("{x}.reshape({shape})", {"x": "a + b", "shape": "(2, 3)"}, {}, "(a + b).reshape((2, 3))"),
    ("norm({x}, {p}, {dim})", {"x": "a", "dim": "-1"}, {"p": "2"}, "norm(a, 2, -1)"),
    ("norm({x}, {p}, {dim})", {"x": "a"}, {"p": "2", "dim": "None"}, "norm(a)"),
    ("{x} ** {p=2}", {"x": "a * b"}, {}, "(a * b) ** 2"),
    ("-{x}", {"x": "a.b"}, {}, "-a.b"),
    ("f({x})", {"x": "lambda: 1"}, {}, "f((lambda: 1))"),
]


@pytest.mark.parametrize(("template", "arguments", "defaults", "expected"), CASES)
def test_fill(template: str, arguments: dict[str, str], defaults: dict[str, str], expected: str) -> None:
    filled = fill(template, {name: cst.parse_expression(text) for name, text in arguments.items()}, {}, defaults)
    assert cst.Module([]).code_for_node(filled) == expected


def test_variadic_is_spliced() -> None:
    filled = fill("{x}.reshape({*shape})", {"x": cst.Name("a")}, {"shape": [cst.Arg(cst.Name("b")), cst.Arg(cst.Integer("1"))]})
    assert cst.Module([]).code_for_node(filled) == "a.reshape(b, 1)"


def test_missing_argument_is_named() -> None:
    with pytest.raises(Missing, match="y"):
        fill("{x} + {y}", {"x": cst.Name("a")})
