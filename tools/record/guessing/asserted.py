"""Whole numbers that fit what a constructor asserts of them (`assert (depth - 4) % 6 == 0`), read from its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

LARGEST = 128
"""Of the numbers that are tried."""
ARITHMETIC = (
    ast.Compare,
    ast.BinOp,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Constant,
    ast.Name,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
    ast.boolop,
    ast.expr_context,
)


def conditions(nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """What must hold of numbers, by the assertions and the refusals (`if depth % 6: raise …`) among the nodes of a function."""
    tests: list[ast.expr] = [node.test for node in nodes if isinstance(node, ast.Assert)]
    refused = [node.test for node in nodes if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)]
    tests += [ast.UnaryOp(ast.Not(), test) for test in refused]
    return [test for test in tests if all(isinstance(part, ARITHMETIC) for part in ast.walk(test))]


def fitting(tests: Sequence[ast.expr], name: str, values: Mapping[str, object]) -> Iterator[int]:
    """The numbers from 2 on, in place of the value of `name`, with which all conditions hold that ask for it and for nothing but these values;
    none where no condition does. Those of which a remainder of zero is taken come last: of such a size there are no layers."""
    own = [test for test in tests if name in (asked := _names(test)) and asked <= {name, *values}]
    numbers = [number for number in range(2, LARGEST + 1) if all(_holds(test, {**values, name: number}) for test in own)] if own else []
    yield from sorted(numbers, key=lambda number: any(_divides_zero(test, {**values, name: number}) for test in own))


def _names(test: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}


def _divides_zero(test: ast.expr, values: Mapping[str, object]) -> bool:
    left = [node.left for node in ast.walk(test) if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.FloorDiv))]
    return any(_value(node, values) == 0 for node in left)


def _holds(test: ast.expr, values: Mapping[str, object]) -> bool:
    return bool(_value(test, values))


def _value(node: ast.expr, values: Mapping[str, object]) -> object:
    """The value of arithmetic over these values; None where it has none."""
    try:
        return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<condition>", "eval"), {"__builtins__": {}}, dict(values))
    except Exception:  # no number, a division by zero
        return None
