"""Integers that are read out of a tensor and only say where rows begin: they may stay arrays, since nothing is sized by them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache

ARITHMETIC = (ast.BinOp, ast.UnaryOp)


@cache
def pointers(function: ast.AST) -> frozenset[str]:
    """Names that a function reads out of something by `int(…)` or `item()`, all of whose uses a traced integer can take.

    These are bounds of written slices `x[p : p + n]`, arithmetic, also with `torch.arange(n)`, the bounds of `torch.arange(p, p + n)`, and what is
    stored into an element of an array.
    """
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    uses = {name: list(_uses(function, name)) for name in _read_out(function)}
    names = set(uses)
    # A name that hands its number to another one is a pointer where that one is.
    while left := {name for name in names if not all(_takes_traced(use, parents, names) for use in uses[name])}:
        names -= left
    return frozenset(name for name in names if any(_says_where(use, parents) for use in uses[name]))


def _says_where(use: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> bool:
    return written_slice(use, parents) is not None or _in_places(use, parents)


def _in_places(use: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a name stands in arithmetic with `arange(n)`, or in the bounds of `arange(p, p + n)`: an array of places."""
    node = use
    while isinstance(parents.get(node), ARITHMETIC):
        node = parents[node]
        if isinstance(node, ast.BinOp) and any(_is_range(side) for side in (node.left, node.right)):
            return True
    call = parents.get(node)
    return isinstance(call, ast.Call) and _is_range(call) and range_length(call) is not None and node in call.args[:2]


def _is_range(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="arange")):
            return True
    return False


def range_length(call: ast.Call) -> ast.expr | None:
    """`n` of `arange(p, p + n)` where `p` is a name."""
    match call.args:
        case [ast.Name() as start, ast.BinOp() as stop]:
            return slice_length(ast.Slice(start, stop))
    return None


def written_slice(use: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> ast.expr | None:
    """The length `n` of a written slice `x[:, p : p + n]` in which a name `p` stands, or `None`."""
    around = parents.get(use)
    bounds = parents.get(around) if isinstance(around, ast.BinOp) else around
    if not isinstance(bounds, ast.Slice) or bounds.step is not None:
        return None
    length = slice_length(bounds)
    index = parents.get(bounds)
    others = index.elts if isinstance(index, ast.Tuple) else []
    place = parents.get(index) if isinstance(index, ast.Tuple) else index
    plain = all(isinstance(other, ast.Slice) for other in others)
    return length if plain and isinstance(place, ast.Subscript) and isinstance(place.ctx, ast.Store) else None


def slice_length(bounds: ast.Slice) -> ast.expr | None:
    """`n` of `p : p + n` or `p : n + p` where `p` is a name."""
    match bounds:
        case ast.Slice(lower=ast.Name(id=start), upper=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=length)) if start == left:
            return length
        case ast.Slice(lower=ast.Name(id=start), upper=ast.BinOp(left=length, op=ast.Add(), right=ast.Name(id=right))) if start == right:
            return length
    return None


def _read_out(function: ast.AST) -> Iterator[str]:
    """Names that are bound by one of the readers, and names that are bound by arithmetic alone."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if reads_out(node.value) or isinstance(node.value, (ast.BinOp, ast.Name)):
                yield node.targets[0].id


def reads_out(value: ast.expr) -> bool:
    """Whether an expression is `int(x)` or `x.item()`."""
    match value:
        case ast.Call(func=ast.Name(id="int"), args=[_], keywords=[]) | ast.Call(func=ast.Attribute(attr="item"), args=[], keywords=[]):
            return True
    return False


def _uses(function: ast.AST, name: str) -> Iterator[ast.Name]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def _takes_traced(use: ast.Name, parents: Mapping[ast.AST, ast.AST], names: set[str]) -> bool:
    if _says_where(use, parents):
        return True
    node: ast.AST = use
    while isinstance(parents.get(node), ARITHMETIC):
        node = parents[node]
    match parents.get(node):
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in names
        case ast.Assign(targets=[ast.Subscript()]):
            return True
        case ast.Expr() | ast.AugAssign(target=ast.Name()):
            return True
        case ast.Call(func=ast.Attribute(attr="fill_"), args=[one]) if one is node:
            return True
    return False
