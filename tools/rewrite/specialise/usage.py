"""What the rest of a tree asks of its helpers, and what calls in a text pass."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.specialise.signatures import bases, literal, provider, signature
from migrate_agent.tools.rewrite.tables.helpers import symbols

VARIES = "…"
"""Stands for an argument that is no literal."""

READ = "… read"
"""Stands for one that is a name or an attribute: leaving it out leaves nothing undone."""


@dataclass
class Usage:
    """What the rest of a tree asks of its helpers.

    `roots`: helpers that it names. `called`: those that it calls, and leaves to their defaults what it does not pass. `passed`: helper → parameters that
    it passes. `fixed`: helpers whose parameters stay as they are, since they are used
    in other ways than by calls. `attributes`: names of attributes that it reads or sets.
    `members`: class → the properties and attributes that remain of it, where that is known beforehand.
    """

    roots: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    passed: dict[str, set[str]] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    members: dict[str, frozenset[str]] = field(default_factory=dict)


@dataclass
class Calls:
    """The calls of helpers in a text, each with the helper whose parameters it passes. `fixed` as in `Usage`."""

    calls: list[tuple[str, ast.Call]] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)


def values_passed(name: str, call: ast.Call, gone: Collection[str] = ()) -> dict[str, str]:
    """Parameter → text of the literal that a call of a helper passes, or `VARIES`; parameters that are `gone` stand in no call any more."""
    declared = signature(name)
    if _is_open(call):
        return dict.fromkeys(declared.names, VARIES)
    positional = [parameter for parameter in declared.positional if parameter not in gone]
    arguments = dict(zip(positional, map(_kind, call.args), strict=False))
    arguments |= {word.arg: _kind(word.value) for word in call.keywords if word.arg}
    return {parameter: arguments.get(parameter) or declared.defaults.get(parameter) or VARIES for parameter in declared.names - set(gone)}


def _kind(argument: ast.expr) -> str:
    return literal(argument) or (READ if isinstance(argument, (ast.Name, ast.Attribute)) else VARIES)


def _is_open(call: ast.Call) -> bool:
    """Whether a call spreads a sequence or mapping, so that anything may be passed."""
    return any(isinstance(argument, ast.Starred) for argument in call.args) or any(word.arg is None for word in call.keywords)


def usage_of(texts: Iterable[str], roots: Collection[str], fixed: Collection[str] = ()) -> Usage:
    """What files of a mirror ask of the helpers `roots`. A text that does not parse fixes all of them."""
    usage = Usage(set(roots), fixed={provider(name) or name for name in fixed})
    for text in texts:
        try:
            tree = ast.parse(text)
        except SyntaxError:
            usage.fixed |= set(roots)
            continue
        calls = calls_in(tree, ("nnx_layers", "nnx_layers_jax"), user=True)
        usage.fixed |= calls.fixed
        for name, node in calls_of(tree):
            usage.called.add(name)
            usage.passed.setdefault(name, set()).update(_given(name, node))
        usage.attributes |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        usage.attributes |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return usage


def _given(name: str, call: ast.Call) -> set[str]:
    declared = signature(name)
    if _is_open(call):
        return set(declared.names)
    return {*declared.positional[: len(call.args)], *(word.arg for word in call.keywords if word.arg)}


def calls_of(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """(the helper whose parameters it passes, call) of each call of a helper by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and provider(node.func.id):
            yield provider(node.func.id), node


def calls_in(tree: ast.AST, modules: Collection[str] = (), user: bool = False) -> Calls:
    """The calls of helpers in a tree; `user` where it is no helper itself, and may inherit from one."""
    calls = Calls(list(calls_of(tree)))
    for owner in [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]:
        _constructor_calls(owner, calls)
    harmless = _harmless(tree, user)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in harmless and node.id in symbols():
            calls.fixed.add(provider(node.id) or node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            calls.fixed.add(provider(node.attr) or node.attr)
    return calls


def _constructor_calls(owner: ast.ClassDef, calls: Calls) -> None:
    """Note what a class passes to the constructor of a helper it inherits from, and fix it where it makes more of its own kind."""
    above = next(filter(None, map(provider, bases(owner.name))), "")
    for node in ast.walk(owner):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__" and above:
            calls.calls.append((above, node))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("cls", "type(self)", "self.__class__"):
            calls.fixed.add(provider(owner.name))
        elif isinstance(node, ast.Attribute) and node.attr == "__init__" and isinstance(node.value, ast.Name):
            calls.fixed.add(provider(node.value.id) or node.value.id)


def _harmless(tree: ast.AST, user: bool) -> set[int]:
    """Names that call a helper, ask for its kind, annotate, stand for a base of another helper, or for a parameter that is called as a helper is."""
    names: set[int] = set()

    def add(node: ast.AST | None) -> None:
        names.update(id(part) for part in ast.walk(node) if isinstance(part, ast.Name)) if node is not None else None

    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            names.add(id(node.func))
            if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
                add(node.args[-1] if node.args else None)
        elif isinstance(node, (ast.AnnAssign, ast.arg)):
            add(node.annotation)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            add(node.returns)
            parameters = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
            names.update(id(part) for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in parameters)
        elif isinstance(node, ast.ClassDef) and not user:
            for base in node.bases:
                add(base)
    return names
