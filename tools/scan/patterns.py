"""Recognises shapes of syntax: assignment targets, base classes, guarded imports, availability tests."""

from __future__ import annotations

import ast
import re

from migrate_agent.tools.scan.exports import dotted_text


def assigned_variables(target: ast.expr) -> list[str]:
    """The top-level variables that an assignment to `target` (or a method call on it) changes."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        return assigned_variables(target.value)
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for element in target.elts for name in assigned_variables(element)]
    return []


def base_names(base: ast.expr) -> list[ast.expr]:
    """The names in an expression that gives a base class: of `Generic[T]` the class, of a call or a choice all that it could be."""
    match base:
        case ast.Name() | ast.Attribute():
            return [base]
        case ast.Subscript(value=value):
            return base_names(value)
        case ast.Call(func=func, args=args):
            return [name for part in (func, *args) for name in base_names(part)]
        case ast.IfExp(body=body, orelse=orelse):
            return [*base_names(body), *base_names(orelse)]
        case ast.BoolOp(values=values):
            return [name for value in values for name in base_names(value)]
    return []


def import_fails(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for an import that fails."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in ("ImportError", "ModuleNotFoundError") for kind in kinds)


_THERE = re.compile(r"is_(\w+_)?(available|initialized)|is_distributed(_\w+)?|(get_)?(world_size|num_processes)")
_PROCESSES = re.compile(r"(get_)?(world_size|num_processes)")


def asks_availability(test: ast.expr) -> bool:
    """Whether a test holds only where a device, a package or other processes are available."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(_THERE.fullmatch(_availability_call(part).rpartition(".")[2]) for part in parts)


def _availability_call(test: ast.expr) -> str:
    """The dotted name of the function that a test calls, or whose result it compares by `>` with a number; "" for other tests."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Gt):
        test = test.left
        return dotted_text(test.func if isinstance(test, ast.Call) else test) or ""
    return (dotted_text(test.func) or "") if isinstance(test, ast.Call) else ""


def leaves_unless_available(node: ast.If) -> bool:
    """`if not is_distributed(): return x`, `if world_size == 1: return x`: what follows runs only where it is there."""
    negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not) and asks_availability(node.test.operand)
    return (negated or _asks_for_one(node.test)) and isinstance(node.body[-1], ast.Return)


def _asks_for_one(test: ast.expr) -> bool:
    """Whether a test holds in a single process: `world_size == 1`, `dist.get_world_size() < 2`."""
    match test:
        case ast.Compare(left, [operator], [ast.Constant(value=int(number))]):
            name = dotted_text(left.func if isinstance(left, ast.Call) else left) or ""
            holds = {ast.Eq: number == 1, ast.LtE: number == 1, ast.Lt: number == 2}.get(type(operator), False)
            return holds and _PROCESSES.fullmatch(name.rpartition(".")[2]) is not None
    return False
