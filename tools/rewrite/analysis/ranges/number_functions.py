"""Functions that only compute with plain numbers, so that calling one twice gives the same: `make_divisible(channels // 4, 8)`."""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.tables.registry import REPEATABLE
from migrate_agent.tools.scan.nodes import walk

STATEMENTS = (ast.Return, ast.If, ast.Expr, ast.Assert, ast.Raise)
"""Beside assignments to local names. Loops may take long, and what else there is may change something outside."""
RAISED = frozenset({"ValueError", "TypeError", "AssertionError", "NotImplementedError"})


def only_computes(function: ast.AST) -> bool:
    """Whether a function has nothing but arithmetic on its arguments, on what it names, and on what Python's and `math`'s functions give."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    inner = [node for statement in function.body for node in walk(statement)]
    return all(map(_is_harmless, inner)) and any(isinstance(node, ast.Return) for node in inner)


def _is_harmless(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=targets):
            return all(_is_local(target) for target in targets)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return _is_local(target)
        case ast.Call(func=ast.Name(id=name)):
            return name in REPEATABLE | RAISED
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"))):
            return True
        case ast.Call() | ast.Lambda() | ast.NamedExpr() | ast.Yield() | ast.YieldFrom() | ast.Await() | ast.comprehension():
            return False
        case ast.Attribute(value=ast.Name(id=owner)):
            return owner == "math"
        case ast.Attribute():
            return False
        case ast.stmt():
            return isinstance(node, STATEMENTS)
    return True


def _is_local(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) or (isinstance(target, ast.Tuple) and all(isinstance(one, ast.Name) for one in target.elts))
