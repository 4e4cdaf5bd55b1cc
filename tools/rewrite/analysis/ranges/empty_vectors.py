"""Finds tensors that are made of lists which may turn out empty: such a tensor has one axis, whatever the elements would have had."""

from __future__ import annotations

import ast

from migrate_agent.tools.scan.nodes import walk

MAKING = frozenset("tensor as_tensor from_numpy Tensor FloatTensor DoubleTensor LongTensor array asarray".split())
"""Functions that make a tensor, or an array of NumPy, of what they are given."""
SAME = frozenset("float double half int long bool to type type_as astype cpu cuda detach clone contiguous requires_grad_ numpy".split())
"""Methods that keep the shape."""


def may_be_empty_vector(function: ast.AST, node: ast.expr, passed: frozenset[str] = frozenset()) -> bool:
    """Whether an expression in this function is made of a list that may be empty. `passed`: names that led here."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[inner, *_]) if name in MAKING:
            return _may_be_empty(inner) or may_be_empty_vector(function, inner, passed)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in SAME:
            return may_be_empty_vector(function, inner, passed)
        case ast.Name(id=name) if name not in passed:
            values = [one.value for one in walk(function) if isinstance(one, ast.Assign) and _binds(one, name)]
            return any(_may_be_empty(one) or may_be_empty_vector(function, one, passed | {name}) for one in values)
    return False


def _may_be_empty(node: ast.expr) -> bool:
    match node:
        case ast.List(elts=elements):
            return not elements
        case ast.ListComp(generators=generators):
            return any(one.ifs or not _has_elements(one.iter) for one in generators)
    return False


def _has_elements(iterated: ast.expr) -> bool:
    """Whether a display or `range(3)` certainly gives something."""
    match iterated:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return any(not isinstance(one, ast.Starred) for one in elements)
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(count))]):
            return count > 0
    return False


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
