"""What code asked before it refused a call on purpose: what has to change together with what was changed, and whole numbers that it takes
(`assert (depth - 4) % 6 == 0`). Used inside the sandbox."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType

from migrate_agent.tools.harness.common.reach import FUNCTIONS, blocks

SIZES = frozenset({"shape", "size", "len", "dim", "ndim", "batch", "batch_size"})
"""Names in conditions that ask for a size."""
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


def names_asked(error: BaseException, root: Path) -> frozenset[str]:
    """The names in the conditions before the statement below `root` that raised this error, or asserted otherwise; none of other errors.

    Of `cfg.act` and of `self.causal` it is the last part.
    """
    raising = _place(error)
    if raising is None or not raising[0].co_filename.startswith(str(root)):
        return frozenset()
    code, line = raising
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return frozenset()
    tests = [*_tests(tree.body, line, ())]
    return frozenset(_last(node) for test in tests for node in ast.walk(test)) - {"", "self"}


def _place(error: BaseException) -> tuple[CodeType, int] | None:
    """The code and the line where an error came up."""
    trace, innermost = error.__traceback__, None
    while trace is not None:
        innermost = trace.tb_frame.f_code, trace.tb_lineno
        trace = trace.tb_next
    return innermost


def _tests(body: Sequence[ast.stmt], line: int, around: tuple[ast.expr, ...]) -> Iterator[ast.expr]:
    """The conditions around the `raise` or `assert` on this line, inside of its function, and what it asserts itself."""
    for statement in body:
        if not statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            continue
        if isinstance(statement, ast.Raise):
            yield from around
        elif isinstance(statement, ast.Assert):
            yield from (*around, statement.test)
        own = (*around, statement.test) if isinstance(statement, (ast.If, ast.While)) else around
        for inner in blocks(statement):
            yield from _tests(inner, line, () if isinstance(statement, (ast.ClassDef, *FUNCTIONS)) else own)


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


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
