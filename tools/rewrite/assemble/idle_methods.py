"""Methods with holes that nothing in a draft names: they become stubs, so that they do not block the classes that share their base.

`Base.load_all` leaves a hole, and of `class A(Base)` and `class B(Base)` only `B` calls it: `A` is migrated with `Base.load_all` as an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from migrate_agent.tools.rewrite.analysis.repo import ClassModel
from migrate_agent.tools.rewrite.rules.cleanup.unexercised import with_docstring
from migrate_agent.tools.rewrite.rules.environment.outside_access import reaches_out
from migrate_agent.tools.types import Example, Hole

CALLED_BY_PYTHON = ("forward", "__")
"""What names of methods begin with that run without being named."""


@dataclass(frozen=True)
class Text:
    """A selected statement: its text, and the methods with holes of it, where it is a class that may have stubs."""

    text: str
    open: Collection[str]


def holes_by_method(model: ClassModel, holes: Iterable[Hole]) -> dict[str, list[Hole]]:
    """Each method of a class with holes → these; under "" those elsewhere in the class."""
    by_method: dict[str, list[Hole]] = {}
    for hole in holes:
        name = next((n for n, m in model.methods.items() if _first_line(m) <= hole.span.line <= (m.end_lineno or m.lineno)), "")
        by_method.setdefault(name, []).append(hole)
    return by_method


def unnamed(texts: Iterable[Text], examples: Iterable[Example]) -> frozenset[str]:
    """The names of those methods with holes that neither the examples nor the texts name, nor a method with holes that they name."""
    mentioned = {word for example in examples for part in _parts(example) for word in re.findall(r"\w+", part)}
    within: dict[str, set[str]] = {}
    for text in texts:
        tree = ast.parse(text.text)
        methods = {node: node.name for node in _methods(tree) if node.name in text.open}
        for node, name in methods.items():
            within.setdefault(name, set()).update(_words(node))
        mentioned |= set(_words(tree, methods.keys()))
    candidates = {name for name in within if not name.startswith(CALLED_BY_PYTHON)}
    todo = [name for name in within if name in mentioned or name not in candidates]
    while todo:
        new = within[todo.pop()] - mentioned
        mentioned |= new
        todo += [name for name in within if name in new]
    return frozenset(candidates - mentioned)


def with_stubs(node: cst.ClassDef, idle: Mapping[str, Hole]) -> cst.ClassDef:
    """The class with the bodies of idle methods replaced by an error that says why."""
    statements: list[cst.BaseStatement] = []
    for statement in node.body.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value in idle:
            name = statement.name.value
            reason = f"{name} was not migrated: {idle[name].reason}"
            line = cst.parse_statement(f"raise NotImplementedError({reason!r})")
            # `@property` and the like stay; a decorator with arguments may need what was not
            # migrated.
            decorators = [d for d in statement.decorators if isinstance(d.decorator, cst.Name)]
            body = with_docstring(statement, cst.IndentedBlock([line]))
            statement = statement.with_changes(body=body, decorators=decorators, returns=None, params=_plain(statement.params))
        statements.append(statement)  # type: ignore[arg-type]
    return node.with_changes(body=node.body.with_changes(body=statements))


def text_with_stubs(text: str, idle: Mapping[str, Hole]) -> str:
    """The text of a class with the bodies of idle methods replaced by an error that says why."""
    module = cst.parse_module(text)
    return module.with_changes(body=[with_stubs(node, idle) if isinstance(node, cst.ClassDef) else node for node in module.body]).code


def _parts(example: Example) -> tuple[str, ...]:
    return example.method, example.setup, example.init, example.call, example.full


def _methods(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for cls in tree.body:
        if isinstance(cls, ast.ClassDef):
            yield from (node for node in cls.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _words(tree: ast.AST, without: Iterable[ast.AST] = ()) -> Iterator[str]:
    """The names, attributes and strings below a node, but for these nodes."""
    left_out = list(without)
    todo = [tree]
    while todo:
        node = todo.pop()
        if node in left_out:
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\w+", node.value)


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _plain(params: cst.Parameters) -> cst.Parameters:
    """Parameters without annotations, and without defaults that reach out of the program (`pickle_module=pickle`)."""
    # Annotations may name torch types, which the mirror does not import.
    result = params.visit(_Plain())
    assert isinstance(result, cst.Parameters)
    return result


class _Plain(cst.CSTTransformer):
    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        default = updated_node.default
        if isinstance(default, (cst.Name, cst.Attribute)) and reaches_out(cst.Module([]).code_for_node(default)):
            default = cst.Name("None")
        return updated_node.with_changes(annotation=None, default=default)
