"""Finds ints of a source that are at least zero whatever it is called with: sizes, and what sums, products, remainders and bounds make of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import argument_names
from migrate_agent.tools.rewrite.analysis.repo import ClassModel
from migrate_agent.tools.scan.nodes import walk

SIZES = frozenset({"size", "dim", "numel", "__len__", "len"})
"""Functions and methods that give sizes."""
CONSTRUCTOR = "__init__"


@dataclass(frozen=True)
class Amounts:
    """Looks for amounts in one function, which is a method of `cls` where it has one. `passed`: names that led here.

    What a constructor is given counts as a size: a width of a negative number of elements is no configuration that anyone uses.
    """

    function: ast.AST | None
    cls: ClassModel | None = None
    passed: frozenset[str] = field(default_factory=frozenset)

    def is_amount(self, node: ast.expr) -> bool:
        """Whether an expression is never below zero."""
        match node:
            case ast.Constant(value=value):
                return type(value) is int and value >= 0
            case ast.Name(id=name):
                return self._is_amount_name(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._is_amount_attribute(name)
            case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Attribute(attr="ndim"):
                return True
            case ast.Call():
                return self._is_amount_call(node)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self._exceeds(left, right)
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.FloorDiv() | ast.Mod(), right=right):
                return self.is_amount(left) and self.is_amount(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_amount(body) and self.is_amount(orelse)
        return False

    def _is_amount_call(self, node: ast.Call) -> bool:
        match node.func:
            case ast.Name(id="max"):
                return any(map(self.is_amount, node.args))
            case ast.Name(id="min"):
                return bool(node.args) and all(map(self.is_amount, node.args))
            case ast.Name(id="int"):
                return len(node.args) == 1 and self.is_amount(node.args[0])
            case ast.Name(id="abs"):
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name in SIZES
        return False

    def _exceeds(self, left: ast.expr, right: ast.expr) -> bool:
        """Whether a difference is an amount: a size less one, `m - n % m`, and the rest of an amount after a part of it."""
        if not self.is_amount(left):
            return False
        match right:
            case ast.Constant(value=1):
                return not isinstance(left, ast.BinOp)
            case ast.BinOp(left=part, op=ast.Mod(), right=whole):
                return self.is_amount(part) and ast.dump(whole) == ast.dump(left)
            case ast.BinOp(left=whole, op=ast.FloorDiv(), right=ast.Constant(value=value)):
                return type(value) is int and value > 0 and ast.dump(whole) == ast.dump(left)
        return False

    def _is_amount_name(self, name: str) -> bool:
        """Whether all that binds a local name gives amounts."""
        if self.function is None or name in self.passed:
            return False
        stores = [
            node for node in walk(self.function) if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        ]
        if isinstance(self.function, ast.FunctionDef | ast.AsyncFunctionDef) and name in argument_names(self.function):
            return not stores and self.cls is not None and self.function.name == CONSTRUCTOR
        values = [value for node in walk(self.function) for value in _bound(node, name)]
        inner = Amounts(self.function, self.cls, self.passed | {name})
        return 0 < len(stores) == len(values) and all(value is True or (value is not False and inner.is_amount(value)) for value in values)

    def _is_amount_attribute(self, name: str) -> bool:
        """Whether the constructor alone sets an attribute, to amounts."""
        key = f"self.{name}"
        if self.cls is None or key in self.passed:
            return False
        made = {id(node) for node in walk(self.cls.methods.get(CONSTRUCTOR, ast.Module([], [])))}
        stores = [node for node in walk(self.cls.node) if _is_store(node, name)]
        values = [
            node.value
            for node in walk(self.cls.node)
            if isinstance(node, ast.Assign) and id(node) in made and len(node.targets) == 1 and _is_store(node.targets[0], name)
        ]
        inner = Amounts(self.cls.methods.get(CONSTRUCTOR), self.cls, self.passed | {key})
        return 0 < len(stores) == len(values) and all(map(inner.is_amount, values))


def _is_store(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load)


def _bound(node: ast.AST, name: str) -> Iterator[ast.expr | bool]:
    """What a statement binds a name to; `True` for a size or a counter of a loop, and `False` for what is not known."""
    match node:
        case ast.Assign(targets=[ast.Name(id=one)], value=value) if one == name:
            yield value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            yield from _unpacked(targets, value, name)
        case ast.For(target=ast.Name(id=one), iter=ast.Call(func=ast.Name(id="range"), args=[_])) if one == name:
            yield True


def _unpacked(targets: list[ast.expr], value: ast.expr, name: str) -> Iterator[ast.expr | bool]:
    """What `b, n, _ = x.shape` and `b, h = *x.shape, self.heads` bind a name to."""
    if _is_shape(value):
        yield from (True for target in targets if isinstance(target, ast.Name) and target.id == name)
        return
    elements = value.elts if isinstance(value, ast.Tuple) else []
    starred = [number for number, element in enumerate(elements) if isinstance(element, ast.Starred)]
    if any(isinstance(target, ast.Starred) for target in targets) or len(starred) > 1 or not elements:
        return
    rest = len(elements) - starred[0] - 1 if starred else 0
    for number, target in enumerate(targets):
        if not isinstance(target, ast.Name) or target.id != name:
            continue
        if not starred or number < starred[0]:
            yield elements[number] if number < len(elements) else False
        elif number >= len(targets) - rest:
            yield elements[number - len(targets)]
        else:
            yield _is_shape(elements[starred[0]].value)  # type: ignore[attr-defined]


def _is_shape(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr="shape"):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=[]):
            return True
        case ast.Subscript(value=inner, slice=ast.Slice()):
            return _is_shape(inner)
    return False
