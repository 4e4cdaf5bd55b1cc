"""Entries of a `state_dict` that are initialised are the parameters that they stand for: `init.zeros_(fc.state_dict()["bias"])` fills `fc.bias`.

The text is changed before it is parsed, and filled up with spaces: what was observed is known by its place in the file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from migrate_agent.tools.scan.nodes import walk

ENTRY = re.compile(r"\.state_dict\(\)\[(['\"])(?P<path>(?:[A-Za-z_]\w*|\d+)(?:\.(?:[A-Za-z_]\w*|\d+))*)\1\]")
INITIALISER = re.compile(r"\binit\.\w+\([^()]*$")
"""A call that such an entry is the first argument of. It writes into a parameter as it does into the tensor behind it."""
ITEMS = re.compile(r"\.state_dict\(\)\.items\(\)")
NO_BUFFER = re.compile(r"weight|bias")
"""Parts of a name that no buffer of torch's layers has."""


def entries_as_attributes(text: str) -> str:
    """The text with such entries as attributes, and with loops over a `state_dict` that initialise weights as loops over parameters. As it is where that
    would be no program."""
    if ".state_dict()" not in text:
        return text
    changed = ENTRY.sub(_attribute, text)
    for line, start, end in sorted(_loops(changed), reverse=True):
        lines = changed.splitlines(keepends=True)
        lines[line] = lines[line][:start] + ".named_parameters()".ljust(end - start) + lines[line][end:]
        changed = "".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError:
        return text
    return changed


def _attribute(match: re.Match[str]) -> str:
    parts = match["path"].split(".")
    text = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    # Elsewhere it may be the state of an optimiser, or of a checkpoint.
    return text.ljust(len(match[0])) if INITIALISER.search(line) and len(text) <= len(match[0]) else match[0]


def _loops(text: str) -> Iterator[tuple[int, int, int]]:
    """(line, first and last column) of `.state_dict().items()` in loops that only initialise what their tests say is a weight or bias."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    lines = text.splitlines()
    for node in walk(tree):
        match node:
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=value)]), iter=ast.Call() as rows, body=body, orelse=[]):
                items = ITEMS.search(lines[rows.lineno - 1], rows.col_offset) if rows.lineno == rows.end_lineno else None
                if items and items.end() == rows.end_col_offset and all(_initialises(one, name, value) for one in body):
                    yield rows.lineno - 1, items.start(), items.end()


def _initialises(statement: ast.stmt, name: str, value: str, named: bool = False) -> bool:
    """Whether a statement does no more than initialise a weight or bias, after a test of its name."""
    match statement:
        case ast.If(test=test, body=body, orelse=others):
            is_weight = named or (NO_BUFFER.search(ast.unparse(test)) is not None and name in ast.unparse(test))
            return all(_initialises(one, name, value, is_weight) for one in body) and all(
                _initialises(one, name, value, named) for one in others
            )
        case ast.Expr(value=ast.Call(func=function, args=[ast.Name(id=first), *_])):
            return named and first == value and "init" in ast.unparse(function)
        case ast.Pass() | ast.Continue():
            return True
    return False
