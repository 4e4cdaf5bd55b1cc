"""Which layers the names of a repository stand for, by the text of its files alone."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from migrate_agent.tools.rewrite.tables.registry import layers, public_name

UNKNOWN = "?"
SAME_AS = "="
"""Before a name that another one is bound to."""


class ParsedFile(Protocol):
    """A file of a repository: its tree, names bound by imports → dotted names, and its classes by name."""

    @property
    def tree(self) -> ast.Module: ...
    @property
    def bindings(self) -> Mapping[str, str]: ...
    @property
    def classes(self) -> Collection[str]: ...


def dotted(file: ParsedFile, node: ast.AST) -> str:
    """The dotted name that a chain of attributes stands for by the imports of its file; "" for anything else."""
    trail: list[str] = []
    while isinstance(node, ast.Attribute):
        trail.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in file.bindings:
        return ""
    return public_name(".".join([file.bindings[node.id], *reversed(trail)]))


def kinds_by_name(files: Iterable[ParsedFile]) -> dict[str, frozenset[str]]:
    """Name of an attribute, variable or entry → the layers that the repository keeps under it."""
    kinds: dict[str, set[str]] = {}
    for file in files:
        classes = _classes_by_name(file)
        for name, value in bound_values(file.tree):
            # `a.emb = b.emb` keeps nothing new under the name.
            made = set() if last_name(value) == name else _made(file, value, classes)
            kinds.setdefault(name, set()).update(made)
    return {name: frozenset(each) for name, each in kinds.items()}


def bound_values(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(name of an attribute, variable, keyword or entry, what is bound to it)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((name, node.value) for target in node.targets for name in _target_names(target))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from ((name, node.value) for name in _target_names(node.target))
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value
        elif isinstance(node, ast.Dict):
            yield from ((key.value, value) for key, value in zip(node.keys, node.values, strict=True) if _is_text(key))  # type: ignore[union-attr]


def parts(node: ast.expr) -> list[ast.expr]:
    """The classes of an `isinstance` test: `(a, b)` and `a | b` are two."""
    if isinstance(node, ast.Tuple):
        return [part for element in node.elts for part in parts(element)]
    if isinstance(node, ast.BinOp):
        return [*parts(node.left), *parts(node.right)]
    return [node]


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _target_names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Attribute):
        yield target.attr
    elif isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _target_names(element)


def _made(file: ParsedFile, value: ast.expr, classes: Mapping[str, set[str]]) -> set[str]:
    """The layers that an expression constructs, by the classes that names of its file stand for; `UNKNOWN` where it may be another value."""
    if isinstance(value, ast.IfExp):
        return _made(file, value.body, classes) | _made(file, value.orelse, classes)
    if not isinstance(value, ast.Call):
        return {UNKNOWN}
    if (name := dotted(file, value.func)) in layers():
        return {name}
    return classes.get(last_name(value.func), {UNKNOWN}) if not name else {UNKNOWN}


def _classes_by_name(file: ParsedFile) -> dict[str, set[str]]:
    """Name of a parameter, variable or attribute of a file → the layers that it stands for, where it is one that is called: `norm_layer`."""
    classes: dict[str, set[str]] = {}
    for node in ast.walk(file.tree):
        if isinstance(node, ast.arguments):
            listed = [*node.posonlyargs, *node.args]
            pairs = list(zip(listed[len(listed) - len(node.defaults) :], node.defaults, strict=True))
            pairs += [(one, default) for one, default in zip(node.kwonlyargs, node.kw_defaults, strict=True) if default is not None]
            for one, default in pairs:
                classes.setdefault(one.arg, set()).update(_classes(file, default))
            for one in listed[: len(listed) - len(node.defaults)]:
                # What callers of this file hand on is seen by its keyword; of others nothing is known.
                classes.setdefault(one.arg, set()).add(UNKNOWN)
    for name, value in bound_values(file.tree):
        classes.setdefault(name, set()).update(_classes(file, value))
    return {name: _resolved(classes, name) for name in classes}


def _resolved(classes: Mapping[str, set[str]], name: str) -> set[str]:
    """The layers that a name stands for, itself and by the names that it is bound to."""
    kinds: set[str] = set()
    names, todo = {name}, [name]
    while todo:
        for kind in classes.get(todo.pop(), {UNKNOWN}):
            other = kind.removeprefix(SAME_AS)
            if other == kind:
                kinds.add(kind)
            elif other not in names:
                names.add(other)
                todo.append(other)
    return kinds


def _classes(file: ParsedFile, value: ast.expr) -> set[str]:
    """The layers that an expression is a class of, or the name that it is; `None` adds nothing."""
    if isinstance(value, ast.IfExp):
        return _classes(file, value.body) | _classes(file, value.orelse)
    if isinstance(value, ast.BoolOp):
        return set().union(*(_classes(file, part) for part in value.values))
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("partial", "functools.partial") and value.args:
        return _classes(file, value.args[0])
    if isinstance(value, ast.Constant) and value.value is None:
        return set()
    if layer := dotted(file, value):
        return {layer if layer in layers() else UNKNOWN}
    return {f"{SAME_AS}{other}" if (other := last_name(value)) else UNKNOWN}


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
