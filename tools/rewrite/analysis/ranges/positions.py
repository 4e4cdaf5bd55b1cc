"""Finds values that are positions along an axis, and so below its length: what `argmax`, `topk` and the like give."""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import argument_names
from migrate_agent.tools.scan.nodes import walk

ALONE = frozenset({"argmax", "argmin", "argsort"})
"""Functions and methods that give positions."""
BESIDE = frozenset({"topk", "sort", "max", "min", "kthvalue", "cummax", "cummin"})
"""Those that give values and positions."""
SAME = frozenset("""view reshape flatten ravel squeeze unsqueeze contiguous detach clone long int permute transpose t expand""".split())
"""Methods after which the elements are what they were."""


def gives_positions(function: ast.AST, node: ast.expr, passed: frozenset[str] = frozenset()) -> bool:
    """Whether an expression in this function is made of positions along some axis of a tensor. `passed`: names that led here."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name in ALONE:
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in SAME:
            return gives_positions(function, inner, passed)
        case ast.Attribute(value=inner, attr="indices") | ast.Subscript(value=inner, slice=ast.Constant(value=1)) if _gives_both(inner):
            return True
        case ast.Subscript(value=inner):
            return gives_positions(function, inner, passed)
        case ast.Name(id=name):
            return name in passed or _is_position_name(function, name, passed | {name})
    return False


def _is_position_name(function: ast.AST, name: str, passed: frozenset[str]) -> bool:
    """Whether all that binds a local name gives positions."""
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and name in argument_names(function):
        return False
    stores = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)]
    values = [value for node in walk(function) if isinstance(node, ast.Assign) for value in _bound(node, name)]
    return 0 < len(stores) == len(values) and all(isinstance(value, bool) or gives_positions(function, value, passed) for value in values)


def _bound(node: ast.Assign, name: str) -> list[ast.expr | bool]:
    """What an assignment binds the name to; `True` where that are the positions of `values, positions = x.topk(k)`."""
    match node.targets, node.value:
        case [ast.Name(id=one)], value if one == name:
            return [value]
        case [ast.Tuple(elts=[_, ast.Name(id=one)])], value if one == name and _gives_both(value):
            return [True]
    return []


def _gives_both(node: ast.expr) -> bool:
    """Whether this is a call that gives values and positions: `x.topk(k)`, and `x.max(1)`, but not `x.max(y)`."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=arguments, keywords=keywords) if name in BESIDE:
            if name not in ("max", "min"):
                return True
            axes = [one.operand if isinstance(one, ast.UnaryOp) else one for one in arguments]
            return any(keyword.arg == "dim" for keyword in keywords) or any(isinstance(one, ast.Constant) for one in axes)
    return False
