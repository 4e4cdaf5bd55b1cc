"""Finds other values for string arguments in the original's code: strings that it compares them with, or that share a table with
their values. Used on the original's side."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch

from migrate_agent.tools.harness.common.argument_changes import CALL, Changes

VOCABULARY = (
    ("none", "mean", "sum"),
    ("zeros", "reflect", "replicate", "circular"),
    ("constant", "reflect", "replicate", "circular"),
    ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"),
    ("bilinear", "nearest", "bicubic"),
    ("zeros", "border", "reflection"),
    ("relu", "gelu"),
    ("tanh", "relu"),
    ("none", "tanh"),
    ("valid", "same"),
)
"""Groups of strings that torch's own functions and layers accept for one argument."""


class Words(NamedTuple):
    """Strings that occur together in code, and the last name of what they are compared with."""

    name: str
    strings: tuple[str, ...]


def written(values: Mapping[str, str], model: torch.nn.Module) -> list[Changes]:
    """Changes of one string argument each, in turn for each argument."""
    groups = [*(words for name in _modules(model) for words in _groups(name)), *(Words("", strings) for strings in VOCABULARY)]
    columns = [[{name: other} for other in _others(name, value, groups)] for name, value in values.items()]
    longest = max(map(len, columns), default=0)
    # Row by row, so that a limited number of trials reaches every argument.
    return [column[row] for row in range(longest) for column in columns if row < len(column)]


def _others(name: str, value: str, groups: Sequence[Words]) -> list[str]:
    own = name.removeprefix(CALL).rpartition(".")[2]
    strings = [string for words in groups if value in words.strings or (own and words.name == own) for string in words.strings]
    return [string for string in dict.fromkeys(strings) if string != value]


def _modules(model: torch.nn.Module) -> list[str]:
    """The modules (names) that define the classes, torch's own left out."""
    classes = (base for part in model.modules() for base in type(part).__mro__)
    return list(dict.fromkeys(cls.__module__ for cls in classes if cls.__module__.partition(".")[0] not in ("torch", "builtins")))


@cache
def _groups(module: str) -> tuple[Words, ...]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    # A class made at run time has no source; its arguments are tried with torch's vocabulary alone.
    except (OSError, TypeError, KeyError, SyntaxError):
        return ()
    return tuple(words for node in ast.walk(tree) for words in _of(node) if words.strings)


def _of(node: ast.AST) -> Iterator[Words]:
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            strings = tuple(string for side in sides for string in _strings([side, *getattr(side, "elts", ())]))
            yield from (Words(name, strings) for side in sides if (name := _name(side)))
        case ast.Dict(keys=keys):
            yield Words("", _strings(keys))
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            yield Words("", _strings(items))
        case ast.Match(subject=subject, cases=cases):
            patterns = [pattern.value for case in cases for pattern in ast.walk(case.pattern) if isinstance(pattern, ast.MatchValue)]
            yield Words(_name(subject), _strings(patterns))


def _strings(nodes: Sequence[Any]) -> tuple[str, ...]:
    return tuple(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _name(node: ast.AST) -> str:
    """The last name of what is compared; of `name.lower()`, the name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _name(node.func.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
