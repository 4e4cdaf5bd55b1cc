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


MATRICES = "input, mat1, mat2, *, beta=1, alpha=1"


@pytest.mark.parametrize(
    ("signature", "call", "of_method", "values"),
    [
        (MATRICES, "f(2, x, 3, a, b)", False, {"input": "x", "mat1": "a", "mat2": "b", "beta": "2", "alpha": "3"}),
        (MATRICES, "f(2, x, a, b)", False, {"input": "x", "mat1": "a", "mat2": "b", "beta": "2"}),
        (MATRICES, "f(2, 3, a, b)", True, {"input": "x", "mat1": "a", "mat2": "b", "beta": "2", "alpha": "3"}),
        (MATRICES, "f(2, a, b)", True, {"input": "x", "mat1": "a", "mat2": "b", "beta": "2"}),
        ("input, other, *, alpha=1", "f(x, 2, y)", False, {"input": "x", "other": "y", "alpha": "2"}),
        ("input, tensor1, tensor2, *, value=1", "f(2, a, b)", True, {"input": "x", "tensor1": "a", "tensor2": "b", "value": "2"}),
    ],
)
def test_numbers_before_what_they_scale(signature: str, call: str, of_method: bool, values: dict[str, str]) -> None:
    """Torch's old signatures, which it takes still."""
    node = cst.parse_expression(call)
    assert isinstance(node, cst.Call)
    receiver = cst.Arg(cst.Name("x")) if of_method else None
    assert texts(bind(parse_signature(signature), node.args, node.args, receiver).values) == values


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
