"""Tests of what a layer's class is called: `m.__class__.__name__.find("Conv") != -1`, in code that sets initial values."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

from migrate_agent.tools.rewrite.tables.registry import layers


class NameTest(NamedTuple):
    """A test of the name that `named` stands for: whether it has one of `words` in it, or is one (`whole`)."""

    named: ast.expr
    words: tuple[str, ...]
    whole: bool

    def holds_for(self, name: str) -> bool:
        """Whether the test holds for a class of this name."""
        return name in self.words if self.whole else any(word in name for word in self.words)

    def layers(self, mentioned: Collection[str], own_classes: Collection[str]) -> frozenset[str]:
        """The layers of torch that the test holds for, those that a repository mentions first; none where a class of its own has such a name."""
        if any(map(self.holds_for, own_classes)):
            return frozenset()
        fitting = [layer for layer in layers() if self.holds_for(layer.rpartition(".")[2])]
        # Where the repository has no such layer, any of them stands for the class that is never found.
        return frozenset(mentioned).intersection(fitting) or frozenset(layer for layer in fitting if layers()[layer].plain_class)


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


def names_only_tested(tree: ast.AST, mentioned: Collection[str], own_classes: Collection[str]) -> frozenset[int]:
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
                    if len(uses) == len(of_name) and all(test.layers(mentioned, own_classes) for test in of_name):
                        only.add(id(asked))
    return frozenset(only)
