"""What a computed name of a layer can be by its text: `"Conv{}d".format(rank)` is one of `Conv1d`, `Conv2d` and `Conv3d`."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.repo import FileModel
from migrate_agent.tools.rewrite.tables.registry import layers, ops
from migrate_agent.tools.types import Span

ANY = r"\w*"
OF_CASES = {"capitalize": "[A-Z][a-z0-9]*", "title": "[A-Z][a-z0-9]*", "upper": "[A-Z0-9_]*", "lower": "[a-z0-9_]*"}
"""Methods of strings → what they give."""
MOST_NAMES = 9
"""Of layers that one text can name: three kinds for one, two and three axes."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def pattern_of_name(file: FileModel, lookup: Span) -> re.Pattern[str] | None:
    """What the second argument of a lookup matches by the text that it is made of; None where that may be anything."""
    for function in ast.walk(file.tree):
        for node in ast.walk(function) if isinstance(function, FUNCTIONS) else ():
            if isinstance(node, ast.Call) and len(node.args) > 1 and span_of(node, file.lines) == lookup:
                texts = {_pattern(text) for text in _texts(function, node)}
                return re.compile("|".join(sorted(texts))) if texts and ANY not in texts else None
    return None


def nameable(namespace: str, pattern: re.Pattern[str], seed_names: Collection[str] = ()) -> set[str]:
    """The layers and functions of a namespace of torch that a text can name where these are few, else those of the families of the `seed_names`."""
    others = {dotted.removeprefix(f"{namespace}.") for dotted in (*layers(), *ops()) if dotted.startswith(f"{namespace}.")}
    possible = {name for name in others if pattern.fullmatch(name) and not name.startswith("Lazy")}
    return possible if len(possible) <= MOST_NAMES else possible & {other for name in seed_names for other in family(name, others)}


def family(name: str, others: Collection[str]) -> set[str]:
    """Names that differ in their digits alone: `Dropout1d` and `Dropout3d` of `Dropout2d`."""
    same = re.sub(r"\d+", lambda _: r"\d+", re.escape(name))
    return {other for other in others if re.fullmatch(same, other)} if same != re.escape(name) else set()


def _texts(function: ast.AST, lookup: ast.Call) -> list[ast.expr]:
    """The expressions of a looked up name: what its variable is given just before, in the same block; else all that it is given in the function."""
    name = lookup.args[1]
    if not isinstance(name, ast.Name):
        return [name]
    for block in _blocks(function):
        at = next((at for at, statement in enumerate(block) if any(node is lookup for node in ast.walk(statement))), None)
        for statement in reversed(block[:at] if at is not None else ()):
            if (value := _given(statement, name.id)) is not None:
                return [value]
            if any(_given(node, name.id) is not None for node in ast.walk(statement)):
                break
    values = [value for node in ast.walk(function) if (value := _given(node, name.id)) is not None]
    stores = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Store)]
    return values if len(stores) == len(values) else [name]


def _blocks(function: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    """The lists of statements of a function, innermost last in the text first."""
    blocks = [
        block
        for node in ast.walk(function)
        for block in (getattr(node, part, None) for part in ("body", "orelse", "finalbody"))
        if isinstance(block, list)
    ]
    yield from reversed(blocks)


def _given(node: ast.AST, name: str) -> ast.expr | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
            return value if target == name else None
    return None


def _pattern(text: ast.expr) -> str:
    """A regular expression of what an expression gives."""
    match text:
        case ast.Constant(value=str(word)):
            return re.escape(word)
        case ast.JoinedStr(values=parts):
            return _joined(list(map(_pattern, parts)))
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            return _pattern(value)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([_pattern(left), _pattern(right)])
        case ast.BinOp(left=ast.Constant(value=str(word)), op=ast.Mod(), right=right):
            return _filled(re.split(r"%[a-z]", word), right.elts if isinstance(right, ast.Tuple) else [right])
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(word)), attr="format"), args=args, keywords=[]):
            return _filled(re.split(r"\{\}", word), args)
        case ast.Call(func=ast.Attribute(attr=method), args=[]) if method in OF_CASES:
            return OF_CASES[method]
    return ANY


def _filled(parts: Sequence[str], values: Sequence[ast.expr]) -> str:
    """Parts of a text with values between them; anything where their numbers do not agree or a part has other braces."""
    if len(parts) != len(values) + 1 or any(character in part for part in parts for character in "{}%"):
        return ANY
    between = [*map(_pattern, values), ""]
    return _joined([text for pair in zip(map(re.escape, parts), between, strict=True) for text in pair])


def _joined(parts: Sequence[str]) -> str:
    """Patterns one after the other; what stands before a last `d` is a number of axes."""
    return re.sub(rf"{re.escape(ANY)}d$", r"\\dd", "".join(parts))
