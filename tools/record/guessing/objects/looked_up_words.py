"""Words that code looks up in what is no dictionary, or in one without them: `tag_to_ix[START_TAG]`, where the guess is a list."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

FIRST_WORDS = ("a", "b", "c")
"""Of a new dictionary: tables of words have more than the few that code names."""


def looked_up_words(
    error: BaseException, frames: Sequence[tuple[FrameType, int]], statement: Callable[[str, int], ast.AST | None]
) -> tuple[tuple[str, str], ...]:
    """The name or attribute of the object that lacks it → the text of the word. `statement` gives the one at a line of a file."""
    if not isinstance(error, KeyError | TypeError | IndexError | ValueError):
        return ()
    rows: list[tuple[str, str]] = []
    for frame, line in reversed(frames):
        node = statement(frame.f_code.co_filename, line)
        rows += [row for part in (ast.walk(node) if node is not None else ()) for row in _row(part, frame)]
    return tuple(dict.fromkeys(rows))


def _row(node: ast.AST, frame: FrameType) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Subscript(value=ast.Name() | ast.Attribute() as owner, slice=ast.Constant() | ast.Name() | ast.Attribute() as key):
            name = owner.id if isinstance(owner, ast.Name) else owner.attr
            table, word = _value(owner, frame), _value(key, frame)
            if (
                isinstance(word, str)
                and isinstance(table, list | tuple | int | str | dict)
                and not (isinstance(table, dict) and word in table)
            ):
                yield name, repr(word)


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What a name, an attribute or a constant stands for in a frame; None for all else."""
    if not all(isinstance(part, ast.Name | ast.Attribute | ast.Constant | ast.expr_context) for part in ast.walk(node)):
        return None
    try:
        return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<word>", "eval"), frame.f_globals, frame.f_locals)
    except Exception:  # a property of the user's may raise anything
        return None


def table_with(text: str, word: str) -> str | None:
    """The text of a dictionary of numbers by words with one more word; a new one where `text` is none, and None where it cannot be read."""
    try:
        table = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    entries = dict(table) if isinstance(table, dict) else {key: number for number, key in enumerate(FIRST_WORDS)}
    key = ast.literal_eval(word)
    return None if key in entries else repr({**entries, key: len(entries)})
