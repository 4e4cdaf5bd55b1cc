"""Functions that do nothing but construct a module, in the same words on both sides: no run need come to them.

    def small(**kwargs):                              def small(**kwargs):
        return Net(8, depth=2, **kwargs)                  return Net(8, depth=2, rngs=default_generator.rngs(), **kwargs)

What is constructed is a class, which has verdicts of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from migrate_agent.tools.programs.judge.beside import Missed

STREAMS = "rngs"
"""The argument that a module of Flax takes beside those of the original."""
DICTIONARY_METHODS = ("update", "setdefault")


class Split(NamedTuple):
    """Files of which lines are missed beyond those of functions that only construct; and these functions, as `file: name`."""

    missed: tuple[Missed, ...]
    functions: tuple[str, ...]


def split_constructions(rows: Collection[Missed], original: Path, rewrite: Path) -> Split:
    """Take out what only constructs, in the same words in both files, which lie below these folders."""
    pairs = [_split(row, original, rewrite) for row in rows]
    return Split(tuple(row for row, _ in pairs if row.original or row.rewrite), tuple(name for _, names in pairs for name in names))


def _split(row: Missed, original: Path, rewrite: Path) -> tuple[Missed, list[str]]:
    ours, theirs = (
        constructions((root / path).read_text(encoding="utf-8-sig"))
        for root, path in ((original, row.file.source), (rewrite, row.file.target))
    )
    same = [name for name in ours if name in theirs and ours[name][0] == theirs[name][0]]
    unrun = [name for name in same if set(theirs[name][1]) & set(row.rewrite)]
    left = [{line for name in same for line in side[name][1]} for side in (ours, theirs)]
    lines = [tuple(line for line in side if line not in gone) for side, gone in zip((row.original, row.rewrite), left, strict=True)]
    return replace(row, original=lines[0], rewrite=lines[1]), [f"{row.file.target}: {name}" for name in unrun]


def constructions(text: str) -> dict[str, tuple[str, range]]:
    """Name → what it says, streams and types aside, and its lines, of each function at the top of a file that only constructs."""
    tree = ast.parse(text)
    classes = set(_classes(tree))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {
        node.name: (_words(node), range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
        for node in functions
        if sum(other.name == node.name for other in functions) == 1 and _only_constructs(node, classes)
    }


def _classes(tree: ast.Module) -> Iterator[str]:
    """The names at the top of a file that a class has, or that are imported and written as one; what torch has is another class in JAX."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] != "torch":
            yield from (name for one in node.names if _is_written_as_class(name := one.asname or one.name))


def _is_written_as_class(name: str) -> bool:
    return name.lstrip("_")[:1].isupper()


def _only_constructs(node: ast.FunctionDef, classes: Collection[str]) -> bool:
    arguments = node.args
    names = {one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg)} - {STREAMS}
    defaults = [one for one in (*arguments.defaults, *arguments.kw_defaults) if one is not None]
    if node.decorator_list or not all(_is_setting(one, frozenset()) for one in defaults):
        return False
    *before, last = _body(node) or [ast.Pass()]
    for statement in before:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_value(value, names, classes):
                names = names | {name}
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) as call):
                if name not in names or method not in DICTIONARY_METHODS or not _has_settings(call, names):
                    return False
            case _:
                return False
    return isinstance(last, ast.Return) and last.value is not None and _is_value(last.value, names, classes)


def _body(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[ast.get_docstring(node, clean=False) is not None :]


def _is_value(node: ast.expr, names: Collection[str], classes: Collection[str]) -> bool:
    """Whether an expression constructs a class, or is a plain setting."""
    constructed = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in classes
    if constructed and isinstance(node, ast.Call):
        # `WIDTH` is written as a constant, and as a class too.
        return _has_settings(node, {*names, *(name for name in classes if not name.isupper())})
    return _is_setting(node, names)


def _has_settings(call: ast.Call, names: Collection[str]) -> bool:
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg != STREAMS)]
    return all(_is_setting(value.value if isinstance(value, ast.Starred) else value, names) for value in values)


def _is_setting(node: ast.expr, names: Collection[str]) -> bool:
    """Whether an expression is made of constants and of these names alone."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in names
        case ast.UnaryOp(operand=inner) | ast.Attribute(value=inner):
            return _is_setting(inner, names)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return all(_is_setting(part, names) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(_is_setting(part, names) for part in (*keys, *values) if part is not None)
        case ast.Call(func=ast.Name(id="dict")):
            return _has_settings(node, names)
    return False


def _words(node: ast.FunctionDef) -> str:
    """What a function says without its types, its documentation and its streams."""
    bare = _Bare().visit(ast.parse(ast.unparse(node))).body[0]
    bare.body = _body(bare)
    return ast.unparse(bare)


class _Bare(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        pairs = [(one, value) for one, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if one.arg != STREAMS]
        node.kwonlyargs, node.kw_defaults = [one for one, _ in pairs], [value for _, value in pairs]
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        self.generic_visit(node)
        return None if node.arg == STREAMS else node
