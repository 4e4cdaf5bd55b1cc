"""Autograd functions that keep nothing of what they compute, and compute it again for the backward pass.

Such a class is gradient checkpointing by hand: `forward` calls a function that it is given on the other
arguments, and `backward` calls the same function once more and asks torch for its gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from migrate_agent.tools.scan.nodes import walk

GRADIENTS = frozenset({"torch.autograd.grad", "torch.autograd.backward"})
ARITHMETIC = (ast.Mult, ast.Div, ast.Sub, ast.MatMult, ast.Pow)
"""Operators that would change a gradient on its way out. `+` joins tuples there."""


@dataclass(frozen=True)
class Recomputation:
    """What is called again in the backward pass: the name of a parameter, and expressions of the others, as source text."""

    function: str
    arguments: tuple[str, ...]


def recomputation(forward: ast.FunctionDef, backward: ast.FunctionDef, dotted: Callable[[ast.AST], str]) -> Recomputation | None:
    """What an autograd function computes twice, or `None` where it does more than that.

    `dotted` gives the dotted name that an expression stands for.
    """
    context, *parameters = [argument.arg for argument in (*forward.args.posonlyargs, *forward.args.args)] or [""]
    attributes = _kept(forward, context)
    call = _only_call(forward, set(parameters), attributes)
    if call is None or not _is_all(forward, context, call, dotted) or not _differentiates(backward, attributes, call, dotted):
        return None
    function = _resolved(call.func, attributes)
    arguments = [_resolved(argument, attributes) for argument in call.args]
    names = {node.id for argument in arguments for node in walk(argument) if isinstance(node, ast.Name)}
    allowed = {*parameters, *((forward.args.vararg.arg,) if forward.args.vararg else ()), "list", "tuple"}
    if call.keywords or not isinstance(function, ast.Name) or not names <= allowed:
        return None
    return Recomputation(function.id, tuple(ast.unparse(_without_copies(argument)) for argument in arguments))


def _kept(forward: ast.FunctionDef, context: str) -> dict[str, ast.expr]:
    """Attributes that `forward` sets on its context, once each, and their values."""
    rows = [
        (node.targets[0].attr, node.value)
        for node in walk(forward)
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and _is_of(node.targets[0], context)
        and isinstance(node.targets[0], ast.Attribute)
    ]
    names = [name for name, _ in rows]
    return {name: value for name, value in rows if names.count(name) == 1}


def _is_of(node: ast.AST, context: str) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=name)):
            return name == context
    return False


def _resolved(node: ast.expr, attributes: dict[str, ast.expr]) -> ast.expr:
    """`node`, with what the context keeps in the place of its attributes."""
    match node:
        case ast.Starred(value=value):
            return ast.Starred(_resolved(value, attributes), ast.Load())
        case ast.Attribute(attr=name) if name in attributes:
            return attributes[name]
    return node


def _without_copies(node: ast.expr) -> ast.expr:
    """`*list(x)` → `*x`."""
    match node:
        case ast.Starred(value=ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner], keywords=[])):
            return ast.Starred(inner, ast.Load())
    return node


def _only_call(forward: ast.FunctionDef, parameters: set[str], attributes: dict[str, ast.expr]) -> ast.Call | None:
    """The one call of a function that `forward` is given."""
    calls = []
    for node in walk(forward):
        if isinstance(node, ast.Call):
            function = _resolved(node.func, attributes)
            if isinstance(function, ast.Name) and function.id in parameters:
                calls.append(node)
    return calls[0] if len(calls) == 1 else None


def _is_all(forward: ast.FunctionDef, context: str, call: ast.Call, dotted: Callable[[ast.AST], str]) -> bool:
    """Whether `forward` gives the result of the call and does nothing else that can be seen outside."""
    output = ""
    for statement in _flat(forward.body, dotted):
        match statement:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name == context:
                continue
            case ast.Assign(targets=[target]) if _is_of(target, context):
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call and not output:
                output = name
            case ast.Return(value=value) if value is call:
                return True
            case ast.Return(value=ast.Name(id=name)):
                return bool(output) and name == output
            case _:
                return False
    return False


def _flat(body: list[ast.stmt], dotted: Callable[[ast.AST], str]) -> list[ast.stmt]:
    """The statements, those under `with torch.no_grad():` too."""
    result = []
    for statement in body:
        match statement:
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=function), optional_vars=None)]) if (
                dotted(function) == "torch.no_grad"
            ):
                result += _flat(statement.body, dotted)
            case _:
                result.append(statement)
    return result


def _differentiates(backward: ast.FunctionDef, attributes: dict[str, ast.expr], call: ast.Call, dotted: Callable[[ast.AST], str]) -> bool:
    """Whether `backward` calls the same function again and hands on the gradients that torch finds for it."""
    function = ast.dump(_resolved(call.func, attributes))
    calls = [node for node in walk(backward) if isinstance(node, ast.Call)]
    again = [node for node in calls if ast.dump(_resolved(node.func, attributes)) == function]
    derived = [node for node in calls if dotted(node.func) in GRADIENTS]
    changed = any(isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ARITHMETIC) for node in walk(backward))
    return (
        len(again) == 1
        and len(derived) == 1
        and not changed
        and not any(isinstance(node, (ast.If, ast.For, ast.While)) for node in walk(backward))
    )
