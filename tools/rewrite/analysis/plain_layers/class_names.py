"""Tests of what a layer's class is called: `m.__class__.__name__.find("Conv") != -1`, in code that sets initial values."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from migrate_agent.tools.rewrite.tables.registry import layers

PARAMETERS = ("weight", "bias")


class NameTest(NamedTuple):
    """A test of the name that `named` stands for: whether it has one of `words` in it, or is one (`whole`)."""

    named: ast.expr
    words: tuple[str, ...]
    whole: bool

    def holds_for(self, name: str) -> bool:
        """Whether the test holds for a class of this name."""
        return name in self.words if self.whole else any(word in name for word in self.words)

    def layers(self, mentioned: Collection[str], own_classes: Mapping[str, bool], function: ast.AST | None) -> frozenset[str]:
        """The layers of torch that the test in `function` holds for, those that a repository mentions first; none where it may hold for a class of
        the repository. `own_classes`: name → whether its instances may have one of `PARAMETERS` of their own."""
        for_all = not self._leads_to_parameters(function)
        if any(self.holds_for(name) and (for_all or has_parameters) for name, has_parameters in own_classes.items()):
            return frozenset()
        fitting = [layer for layer in layers() if self.holds_for(layer.rpartition(".")[2])]
        # Where the repository has no such layer, any of them stands for the class that is never found.
        return frozenset(mentioned).intersection(fitting) or frozenset(layer for layer in fitting if layers()[layer].plain_class)

    def _leads_to_parameters(self, function: ast.AST | None) -> bool:
        """Whether what the test guards begins with a parameter of the object: it would fail for an object that has none."""
        owner, asked = owner_in(self, function), ast.unparse(self.named)
        branches = [one for one in ast.walk(function) if isinstance(one, ast.If)] if function is not None and owner is not None else []
        tests = {id(branch): [test for test in map(name_test, _expressions(branch.test)) if test is not None] for branch in branches}
        guarded = [
            branch for branch in branches if any(test[1:] == self[1:] and ast.unparse(test[0]) == asked for test in tests[id(branch)])
        ]
        return bool(guarded) and all(_reads_parameter(branch, ast.unparse(owner)) for branch in guarded if owner is not None)


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    return (one for one in ast.walk(node) if isinstance(one, ast.expr))


def _reads_parameter(branch: ast.If, owner: str) -> bool:
    """Whether a branch is only taken for objects with a parameter: its test asks for one, or its first statement reads one in any case."""
    asked = {f"hasattr({owner}, {name!r})" for name in PARAMETERS}
    conditions = branch.test.values if isinstance(branch.test, ast.BoolOp) and isinstance(branch.test.op, ast.And) else [branch.test]
    first = branch.body[0]
    names = {ast.unparse(one) for one in _expressions(first)} if isinstance(first, (ast.Expr, ast.Assign, ast.AugAssign)) else set()
    is_certain = not any(isinstance(one, (ast.IfExp, ast.BoolOp, ast.Lambda)) for one in _expressions(first))
    return any(ast.unparse(one) in asked for one in conditions) or (is_certain and bool(names & {f"{owner}.{name}" for name in PARAMETERS}))


def name_test(test: ast.expr) -> NameTest | None:
    """The test of a class's name that an expression is; None for any other."""
    match test:
        case ast.Compare(
            left=ast.Call(func=ast.Attribute(value=named, attr="find"), args=[ast.Constant(value=str() as word)]),
            ops=[op],
            comparators=[than],
        ):
            text = f"{type(op).__name__} {ast.unparse(than)}"
            return NameTest(named, (word,), False) if text in ("NotEq -1", "Gt -1", "GtE 0") else None
        case ast.Compare(left=ast.Constant(value=str() as word), ops=[ast.In()], comparators=[named]):
            return NameTest(named, (word,), False)
        case ast.Compare(left=named, ops=[ast.Eq()], comparators=[ast.Constant(value=str() as word)]):
            return NameTest(named, (word,), True)
    return None


def named_object(node: ast.expr) -> ast.expr | None:
    """What `m.__class__.__name__` and `type(m).__name__` name the class of; None for any other expression."""
    match node:
        case ast.Attribute(value=ast.Attribute(value=owner, attr="__class__"), attr="__name__"):
            return owner
        case ast.Attribute(value=ast.Call(func=ast.Name(id="type"), args=[owner]), attr="__name__"):
            return owner
    return None


def owner_in(test: NameTest, function: ast.AST | None) -> ast.expr | None:
    """The value whose class a test names, itself or by a variable that the function sets once; None where that is not known."""
    if (owner := named_object(test.named)) is not None or not isinstance(test.named, ast.Name) or function is None:
        return owner
    name = test.named.id
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == name for target in node.targets)
    ]
    return named_object(values[0]) if len(values) == 1 else None


def names_only_tested(tree: ast.AST, mentioned: Collection[str], own_classes: Mapping[str, bool]) -> frozenset[int]:
    """The `m.__class__` and `type(m)` of a file whose name is only tested, and that for layers: each becomes an `isinstance`."""
    only: set[int] = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        tests = [test for node in ast.walk(function) if isinstance(node, ast.Compare) and (test := name_test(node)) is not None]
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute(value=asked) as value) if named_object(value) is not None:
                    uses = [
                        one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
                    ]
                    of_name = [test for test in tests if isinstance(test.named, ast.Name) and test.named.id == name]
                    if len(uses) == len(of_name) and all(test.layers(mentioned, own_classes, function) for test in of_name):
                        only.add(id(asked))
    return frozenset(only)
