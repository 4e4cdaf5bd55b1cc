"""Numbers that are read out of a tensor only to be handed back: `losses.append(loss.item())`, `logs["loss"] = float(loss)`."""

from __future__ import annotations

import ast
import math

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.control_flow.computed_numbers import listed
from migrate_agent.tools.rewrite.rules.rule import Rule

FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8"})
DISPLAYS = (cst.Tuple, cst.List, cst.Dict, cst.Element, cst.DictElement)
OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)


class HandBackNumbers(Rule):
    """Keep what is handed back as an array: `losses.append(loss.item())` → `losses.append(jax.lax.stop_gradient(loss))`, for a tensor with one element.

    Under `jit` no value can be read. A count stays as it is: `return loss, mask.sum().item()` → `return loss, jnp.sum(mask)`. Other numbers may scale
    what is handed back: `return right.item() * (100.0 / n)`, also where it has a name. Declines where anything else is computed from the number, or may be, and in code
    that Python runs.
    """

    KEEP = ("def f(x, logs):\n    logs.append(float(x))\n    return logs\n",)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not hands_back(self.context, original):
            return None
        value = updated.args[0].value if updated.args else cst.ensure_type(updated.func, cst.Attribute).value
        fact = self.context.observed(_read(original) or original)
        has_axes = fact is not None and any(fact.shapes)
        template = "{x}.reshape(())" if has_axes else "{x}"
        if fact is None or not set(fact.dtypes) <= INTEGERS:
            template = f"lax.stop_gradient({template})"
        elif isinstance(original.func, cst.Name):  # `float(count)`
            template = f"{template}.astype(float)"
        return self.context.build(template, x=value)

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        """`return x.tolist()[0]`."""
        before, after = listed(original), listed(updated)
        if before is None or after is None or not hands_back(self.context, original):
            return None
        read, indices = after
        element = cst.Subscript(read, [cst.SubscriptElement(cst.Index(index)) for index in indices])
        fact = self.context.observed(before[0])
        counts = fact is not None and set(fact.dtypes) <= INTEGERS
        return element if counts else self.context.build("lax.stop_gradient({x})", x=element)


def hands_back(context: Context, node: cst.Call | cst.Subscript) -> bool:
    """Whether an original expression, the one that is being left, reads a number out of a tensor only to hand it back."""
    elements = listed(node) if isinstance(node, cst.Subscript) else None
    read = elements[0] if elements else _read(node) if isinstance(node, cst.Call) else None
    if read is None or context.at_host or context.constructing or not context.functions:
        return False
    scales = _scales(context, node)
    if not _is_handed_back(context, scales):
        return False
    fact = context.observed(read)
    if fact is None or not is_tensor(fact) or not fact.dtypes or not set(fact.dtypes) <= FLOATS | INTEGERS:
        return False
    if set(fact.dtypes) & INTEGERS and set(fact.dtypes) & FLOATS:
        return False
    return bool(fact.shapes) and all(len(shape) == len(elements[1]) if elements else math.prod(shape) == 1 for shape in fact.shapes)


def _read(call: cst.Call) -> cst.BaseExpression | None:
    """What `.item()` or `float(…)` reads."""
    match call:
        case cst.Call(func=cst.Attribute(value=read, attr=cst.Name("item")), args=[]):
            return read
        case cst.Call(func=cst.Name("float"), args=[cst.Arg(value=read, keyword=None, star="")]):
            return read
    return None


def _scales(context: Context, read: cst.BaseExpression) -> int:
    """How many operations with plain numbers stand around the number at hand."""
    inner: cst.CSTNode = read
    for count, node in enumerate(reversed(context.stack)):
        if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, OPERATORS):
            return count
        other = node.right if node.left is inner else node.left
        # Python refuses to divide by a number that is zero, and an array gives infinity.
        if not _is_number(context, other) or (isinstance(node.operator, cst.Divide) and node.right is inner):
            return count
        inner = node
    return 0


def _is_number(context: Context, node: cst.BaseExpression) -> bool:
    """Whether an expression is a plain number."""
    if isinstance(node, (cst.Integer, cst.Float)):
        return True
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, OPERATORS):
        return _is_number(context, node.left) and _is_number(context, node.right)
    fact = context.observed(node)
    return fact is not None and bool(fact.kinds) and set(fact.kinds) <= {"int", "float"}


def _is_handed_back(context: Context, scales: int = 0) -> bool:
    """Whether the expression being left is returned, appended to a list, or an entry of a list, tuple or dictionary; it, or what so many operations
    make of it."""
    stack = context.stack[: len(context.stack) - scales]
    around = [node for node in reversed(stack) if not isinstance(node, DISPLAYS)]
    inside = len(around) < len(stack) and isinstance(stack[-1], (cst.Element, cst.DictElement))
    match around[:3]:
        case [cst.Return(), *_]:
            return True
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]), *_]:
            return inside or (len(around) == len(stack) and _is_only_returned(context, name))
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=holder))]), *_]:
            return _holds(context, holder, {"dict", "list"})
        case [cst.Arg(keyword=None), cst.Call(func=cst.Attribute(value=holder, attr=cst.Name("append")), args=[_]), cst.Expr()]:
            return _holds(context, holder, {"list"})
    return False


def _is_only_returned(context: Context, name: str) -> bool:
    """Whether the function around binds a local name here last, and from then on returns it, alone or in a tuple, list or dictionary, and does nothing
    else with it."""
    function = context.file.functions.get(".".join(context.path))
    if function is None:
        return False
    assignment = next(node for node in reversed(context.stack) if isinstance(node, cst.Assign))
    line, end = context.span(assignment).line, context.span(assignment).end_line
    uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    loads = [node for node in uses if isinstance(node.ctx, ast.Load)]
    returned = [leaf for node in ast.walk(function) if isinstance(node, ast.Return) and node.value for leaf in _leaves(context, node.value)]
    if len(uses) > len(loads) + 1:
        branched = any(isinstance(node, (cst.If, cst.For, cst.While, cst.Try, cst.With, cst.Match)) for node in context.stack)
        if branched or any(isinstance(node.ctx, ast.Store) and node.lineno > end for node in uses) or _is_in_loop(function, line):
            return False
        loads = [load for load in loads if load.lineno > end]
    return bool(loads) and all(any(load is leaf for leaf in returned) for load in loads)


def _is_in_loop(function: ast.AST, line: int) -> bool:
    loops = [node for node in ast.walk(function) if isinstance(node, (ast.For, ast.While))]
    return any(loop.lineno <= line <= (loop.end_lineno or loop.lineno) for loop in loops)


def _leaves(context: Context, node: ast.expr) -> list[ast.expr]:
    """The expressions that stand in nested displays, and what plain numbers scale there."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [leaf for part in parts for leaf in _leaves(context, part)]
        case ast.Dict(values=parts):
            return [leaf for part in parts for leaf in _leaves(context, part)]
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            if _is_plain(context, right):
                return _leaves(context, left)
            if _is_plain(context, left) and not isinstance(node.op, ast.Div):
                return _leaves(context, right)
    return [node]


def _is_plain(context: Context, node: ast.expr) -> bool:
    """Whether an expression is a plain number, and was not read out of a tensor."""
    if any(isinstance(part, ast.Attribute) and part.attr in ("item", "tolist") for part in ast.walk(node)):
        return False
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    fact = context.facts.observed.get(span_of(node, context.file.lines))
    return fact is not None and bool(fact.kinds) and set(fact.kinds) <= {"int", "float"}


def _holds(context: Context, node: cst.BaseExpression, kinds: set[str]) -> bool:
    fact = context.observed(node)
    return fact is not None and bool(fact.kinds) and set(fact.kinds) <= kinds
