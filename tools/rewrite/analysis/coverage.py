"""Notes on the code of a class that no example ran. The rules rewrote it too, but no check has seen it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from migrate_agent.tools.rewrite.analysis.repo import ClassModel


def unexercised(model: ClassModel, observed_lines: Set[int]) -> list[str]:
    """One note for each method that no example ran, and for each branch of a method that did run.

    A branch that only raises gets no note.
    """
    # Without a recording every method would get a note, which tells nothing.
    if not observed_lines:
        return []
    path = model.file.file.path
    notes = []
    for name, method in model.methods.items():
        if not _leaves_observations(method.body):
            continue
        if not _ran(method.body, observed_lines):
            notes.append(f"{path}:{method.lineno}: {model.qualname}.{name} is run by no example")
            continue
        for first, last in _branches(method.body, observed_lines):
            line_range = f"{first}-{last}" if last > first else f"{first}"
            notes.append(f"{path}:{line_range}: this branch of {model.qualname}.{name} is run by no example")
    return notes


def _branches(body: list[ast.stmt], lines: Set[int]) -> Iterator[tuple[int, int]]:
    for statement in body:
        for block in (getattr(statement, "body", []), getattr(statement, "orelse", [])):
            if not block or isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or not isinstance(block, list):
                continue
            if _ran(block, lines):
                yield from _branches(block, lines)
            elif _leaves_observations(block) and not _only_raises(block):
                yield block[0].lineno, block[-1].end_lineno or block[-1].lineno


def _only_raises(block: list[ast.stmt]) -> bool:
    """Whether a block ends in `raise`, or is an `elif` that only raises."""
    # A check of arguments that never fired is no gap in the examples.
    last = block[-1]
    if isinstance(last, ast.If) and len(block) == 1:
        return _only_raises(last.body) and (not last.orelse or _only_raises(last.orelse))
    return isinstance(last, ast.Raise)


def _ran(body: list[ast.stmt], lines: Set[int]) -> bool:
    return any(body[0].lineno <= line <= (body[-1].end_lineno or 0) for line in lines)


def _leaves_observations(body: list[ast.stmt]) -> bool:
    """Whether running the block can leave an observation: constants, names and `pass` leave none."""
    kinds = (ast.Call, ast.Attribute, ast.BinOp, ast.Subscript, ast.Compare)
    return any(isinstance(node, kinds) for statement in body for node in ast.walk(statement))
