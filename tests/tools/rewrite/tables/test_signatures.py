"""Arguments of a call are bound to torch's parameters as torch binds them."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst
import pytest

from migrate_agent.tools.rewrite.tables.signatures import BindError, Bound, bind, literal_argument, parse_signature


def bound(signature: str, call: str) -> Bound:
    node = cst.parse_expression(call)
    assert isinstance(node, cst.Call)
    return bind(parse_signature(signature), node.args, node.args)


def texts(values: Any) -> dict[str, str]:
    return {name: cst.Module([]).code_for_node(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("signature", "call", "values"),
    [
        ("input, dim=None", "f(x, 1)", {"input": "x", "dim": "1"}),
        ("input, dim=None", "f(x, axis=1)", {"input": "x", "dim": "1"}),  # NumPy's name
        ("input, *, dtype=None", "f(x, dtype=d)", {"input": "x", "dtype": "d"}),
        ("input", "f(x, device=d)", {"input": "x"}),  # without a meaning in JAX
    ],
)
def test_arguments_by_name(signature: str, call: str, values: dict[str, str]) -> None:
    assert texts(bound(signature, call).values) == values


def test_variadic_arguments() -> None:
    result = bound("self, *size, dtype=None", "f(x, 2, *rest, dtype=d)")
    assert [cst.Module([]).code_for_node(argument.value) for argument in result.variadic["size"]] == ["2", "rest"]
    assert texts(bound("input, memory_format", "f(x, memory_format=m)").values) == {"input": "x", "memory_format": "m"}
    assert texts(bound("input", "f(x, device=d)").dropped) == {"device": "d"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("f()", "'input' is missing"),
        ("f(x, y, z)", "too many"),
        ("f(x, other=1)", "unknown argument 'other'"),
        ("f(x, input=y)", "given twice"),
        ("f(*xs)", "spread"),
        ("f(x, **options)", "spread"),
    ],
)
def test_what_does_not_fit(call: str, message: str) -> None:
    with pytest.raises(BindError, match=message):
        bound("input, dim=None", call)


@pytest.mark.parametrize(("call", "value"), [("f(x)", 0.5), ("f(x, 0)", 0), ("f(x, p=1)", 1), ("f(x, p=q)", ...), ("f(x, **options)", ...)])
def test_literal_argument(call: str, value: Any) -> None:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert literal_argument(parse_signature("input, p=0.5"), node, "p") == value
