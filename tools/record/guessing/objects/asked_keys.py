"""Keys of a table that code looked up another one in: `self.nets[name]` where the table has "small" and "large"."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

MOST = 4


def asked_keys(
    error: BaseException, frames: Sequence[tuple[FrameType, int]], statement: Callable[[str, int], ast.AST | None]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Local name → texts of the keys that it may stand for, where a table had no such key. `statement` gives the one at a line of a file."""
    if not isinstance(error, KeyError):
        return ()
    rows: list[tuple[str, tuple[str, ...]]] = []
    for frame, line in reversed(frames):
        node = statement(frame.f_code.co_filename, line)
        rows += [row for part in (ast.walk(node) if node is not None else ()) for row in _row(part, frame)]
    return tuple(dict.fromkeys(rows))


def _row(node: ast.AST, frame: FrameType) -> Iterator[tuple[str, tuple[str, ...]]]:
    match node:
        case ast.Subscript(value=owner, slice=ast.Name(id=name)) if name in frame.f_locals:
            keys = _keys(owner, frame)
            plain = [repr(key) for key in keys if isinstance(key, str | int)]
            if plain and frame.f_locals[name] not in keys:
                yield name, tuple(plain[:MOST])


def _keys(owner: ast.expr, frame: FrameType) -> list[Any]:
    """The keys of a table that is a name, or an attribute of one."""
    if not all(isinstance(part, ast.Name | ast.Attribute | ast.expr_context) for part in ast.walk(owner)):
        return []
    try:
        table = eval(compile(ast.fix_missing_locations(ast.Expression(owner)), "<table>", "eval"), frame.f_globals, frame.f_locals)
        return list(table.keys())
    except Exception:  # a property of the user's may raise anything
        return []
