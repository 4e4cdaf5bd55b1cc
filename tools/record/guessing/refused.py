"""What code asked before it refused a call on purpose: what has to change together with what was changed. Used inside the sandbox."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType

from migrate_agent.tools.harness.common.reach import FUNCTIONS, blocks

SIZES = frozenset({"shape", "size", "len", "dim", "ndim", "batch", "batch_size"})
"""Names in conditions that ask for a size."""


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
