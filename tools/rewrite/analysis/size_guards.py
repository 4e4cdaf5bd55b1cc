"""Tables that a call works out anew only where a size is another one: `if n != self.n: self.make_grid(n)`.

Like other values that only save work (`memos`), each call may as well work them out: they follow from sizes and numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.memos import PLAIN, depends_on_sizes
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

UNSET = frozenset({"0", "-1", "None"})


@dataclass(frozen=True)
class SizeGuard:
    """A branch that is taken where an attribute, the `key`, is not the size at hand. `test`: the span of the whole `if`."""

    key: str
    test: Span
    asked: frozenset[int]
    """The ids of the nodes of its condition."""


def size_guards(repo: Repo, model: ClassModel, facts: Facts) -> tuple[SizeGuard, ...]:
    """The guards of a module class, where all that they compute follows from sizes, numbers and buffers."""
    # A subclass could read what is kept, or compute it in another way.
    if not repo.is_module_class(model) or repo.descendants.get(model.id) or "__init__" not in model.methods:
        return ()
    nodes = ((method, node) for name, method in model.methods.items() if name != "__init__" for node in walk(method))
    guards = [(method, node, key) for method, node in nodes if isinstance(node, ast.If) and (key := _key(model, facts, node))]
    return tuple(
        SizeGuard(key, span_of(node, model.file.lines), frozenset(id(part) for part in walk(node.test)))
        for method, node, key in guards
        if [other for _, _, other in guards].count(key) == 1 and _is_recomputed(repo, model, facts, method, node, key)
    )


def _key(model: ClassModel, facts: Facts, node: ast.If) -> str:
    """The attribute that the condition of an `if` compares with a size, and that starts as none; "" where it does something else."""
    match node:
        case ast.If(test=ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]), orelse=[]):
            for side, other in ((left, right), (right, left)):
                fact = facts.observed.get(span_of(other, model.file.lines))
                if id(side) in model.own and fact is not None and set(fact.kinds) <= PLAIN and _starts_unset(model, model.own[id(side)]):
                    return model.own[id(side)]
    return ""


def _starts_unset(model: ClassModel, key: str) -> bool:
    """Whether the constructor sets the key to what no size is: 0, -1 or `None`. What it computed for a real one could be something else."""
    starts = [value for target, value in _stores(model, model.methods["__init__"]) if target == key]
    return len(starts) == 1 and ast.unparse(starts[0]) in UNSET


def _stores(model: ClassModel, node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for part in walk(node):
        match part:
            case ast.Assign(targets=[target], value=value) if id(target) in model.own:
                yield model.own[id(target)], value


def _is_recomputed(repo: Repo, model: ClassModel, facts: Facts, method: FunctionNode, node: ast.If, key: str) -> bool:
    """Whether the branch sets the key, alone in the class, and what it computes follows from sizes."""
    region, function = _region(model, node)
    stored = [function for function in model.methods.values() for name, _ in _stores(model, function) if name == key]
    if len(stored) != 2 or key not in {name for statement in region for name, _ in _stores(model, statement)}:
        return False
    if not all(isinstance(statement, ast.Assign | ast.If) for statement in region):
        return False
    return all(depends_on_sizes(repo, model, facts, function or method, statement, region) for statement in region)


def _region(model: ClassModel, node: ast.If) -> tuple[list[ast.stmt], FunctionNode | None]:
    """The statements of the branch; where it only calls a method, those of that method, and the method."""
    match node.body:
        case [ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) as target))] if id(target) in model.own and name in model.methods:
            function = model.methods[name]
            first = function.body[0]
            is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            return function.body[is_text:], function
    return node.body, None
