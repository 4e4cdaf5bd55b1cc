"""The words that a parameter may be, as the code that takes it says: comparisons, tables, `getattr`, annotations."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Literal, get_args, get_origin

DEPTH = 2
"""How many functions a parameter is followed into."""
MOST = 6
NAMED = {"rnn": ("'LSTM'", "'GRU'"), "norm": ("'BatchNorm2d'", "'BatchNorm1d'"), "act": ("'ReLU'",), "pool": ("'MaxPool2d'",)}
"""What `getattr(torch.nn, name)` may look up, by what is in the parameter's name."""


def choices(function: Callable[..., Any], parameter: inspect.Parameter) -> tuple[str, ...]:
    """Texts of values that a function's code compares a parameter with, or looks up by it; the first ones found first."""
    annotated = list(_annotated(parameter.annotation))
    return tuple(dict.fromkeys(annotated or list(_compared(function, parameter.name, DEPTH))))[:MOST]


def _annotated(annotation: Any) -> Iterator[str]:
    """The values of a `Literal`, the members of an `Enum`."""
    if get_origin(annotation) is Literal:
        yield from (repr(value) for value in get_args(annotation))
    elif isinstance(annotation, str) and (found := re.search(r"Literal\[(.*?)\]", annotation)):
        yield from (ast.unparse(part) for part in ast.parse(f"[{found[1]}]", mode="eval").body.elts)  # type: ignore[attr-defined]
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (f"{annotation.__name__}.{member.name}" for member in annotation)


def _compared(function: Callable[..., Any], name: str, depth: int) -> Iterator[str]:
    code = inspect.unwrap(function)
    known = vars(sys.modules[code.__module__]) if getattr(code, "__module__", "") in sys.modules else {}
    for node in _nodes(code):
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant(value=str(word))]) if _is(left, name):
                yield repr(word)
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[table]) if _is(left, name):
                yield from _words(table, known)
            case ast.Subscript(value=table, slice=key) if _is(key, name):
                yield from _words(table, known)
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *_]) if _is(key, name):
                yield from _words(table, known)
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, key, *_]) if _is(key, name) and ast.unparse(owner).endswith("nn"):
                yield from (text for part, texts in NAMED.items() if part in name.lower() for text in texts)
            case ast.Call(func=called, args=args, keywords=keywords) if depth > 1:
                yield from _followed(called, args, keywords, name, known, depth)


def _followed(
    called: ast.expr, args: list[ast.expr], keywords: list[ast.keyword], name: str, known: Mapping[str, Any], depth: int
) -> Iterator[str]:
    """What a function of the same program that is given the parameter compares it with."""
    given = [at for at, arg in enumerate(args) if _is(arg, name)]
    named = [keyword.arg for keyword in keywords if keyword.arg and _is(keyword.value, name)]
    target = _value(called, known) if given or named else None
    if target is None or not callable(target):
        return
    try:
        parameters = list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return
    for other in (*named, *(parameters[at] for at in given if at < len(parameters))):
        yield from _compared(target, other, depth - 1)


def _nodes(code: Any) -> Iterator[ast.AST]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError):
        return
    yield from ast.walk(tree)


def _is(node: ast.expr, name: str) -> bool:
    """`name`, `self.name`, `name.lower()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="lower" | "upper" | "strip"), args=[]):
            return _is(inner, name)
        case ast.Attribute(value=ast.Name(id="self"), attr=found) | ast.Name(id=found):
            return found == name
    return False


def _words(table: ast.expr, known: Mapping[str, Any]) -> Iterator[str]:
    """The constants of a container in the code, or the words that a container of the program holds."""
    match table:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            yield from (repr(part.value) for part in parts if isinstance(part, ast.Constant))
        case ast.Dict(keys=keys):
            yield from (repr(key.value) for key in keys if isinstance(key, ast.Constant))
        case _:
            held = _value(table, known)
            if isinstance(held, (list, tuple, set, frozenset, Mapping)):
                words = [repr(word) for word in held if isinstance(word, (str, int))]
                yield from sorted(words) if isinstance(held, (set, frozenset)) else words


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """What a dotted name stands for at the top of a module."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    owner = _value(node.value, known) if isinstance(node, ast.Attribute) else None
    return vars(owner).get(node.attr) if isinstance(node, ast.Attribute) and inspect.ismodule(owner) else None
