"""Numbers that are read out of an integer tensor only to go where JAX takes an array as well."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule

INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8"})
ARITHMETIC = (cst.UnaryOperation, cst.BinaryOperation)
WIDENING = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
"""Operators that make a float of an integer and a float."""


class KeepTracedIntegers(Rule):
    """Index and roll by arrays: `x[int(i)]` → `x[i]`, `torch.roll(x, -int(i), -1)` → the same of `i`, an integer tensor without axes.

    `1 / float(i)` → `1 / (i * 1.0)`, where a tensor or a local name takes the result, or it is returned: no float sizes anything. What meets a float of Python stays as it
    is: `float(i) / float(n)` → `i / float(n)`.
    Declines where the number would size something, and where `i` was not observed.
    """

    KEEP = ("def f(x, i):\n    return x[int(i)]\n", "def f(i):\n    return 1 / float(i)\n")

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if is_traced_float(self.context, original):
            if name := _assigned_name(self.context):
                self.context.traced.add((self.context.function_key, name))
            if _meets_float(self.context, original):
                return self.context.parenthesise(updated.args[0].value)
            # An integer times a Python float has the weak type that torch's Python float had.
            return self.context.parenthesise(self.context.build("{i} * 1.0", i=updated.args[0].value))
        if not is_traced_integer(self.context, original):
            return None
        return updated.args[0].value if updated.args else cst.ensure_type(updated.func, cst.Attribute).value


def is_traced_integer(context: Context, call: cst.Call) -> bool:
    """Whether an original call, the one that is being left, reads out an integer that may stay an array."""
    func = call.func
    if isinstance(func, cst.Name) and func.value == "int" and len(call.args) == 1:
        read = call.args[0].value
    elif isinstance(func, cst.Attribute) and func.attr.value == "item" and not call.args:
        read = func.value
    else:
        return False
    if not _is_integer(context, read):
        return False
    # Arithmetic with a traced integer gives another one: what takes the result decides.
    around = [node for node in reversed(context.stack) if not isinstance(node, ARITHMETIC)]
    match around[:3]:
        case [cst.Index(), cst.SubscriptElement(), cst.Subscript(value=value)]:
            return is_tensor(context.observed(value))
        case [cst.Arg() as argument, cst.Call(func=called, args=args), *_]:
            method = isinstance(called, cst.Attribute) and called.attr.value == "roll" and is_tensor(context.observed(called.value))
            shifts = 0 if method else 1
            positions = [i for i, one in enumerate(args) if one is argument]
            named = argument.keyword is not None and argument.keyword.value == "shifts"
            return (method or context.dotted(called) == "torch.roll") and (named or positions == [shifts])
    return False


def is_traced_float(context: Context, call: cst.Call) -> bool:
    """Whether an original call, the one that is being left, reads out an integer as a float that may stay an array."""
    match call:
        case cst.Call(func=func, args=[cst.Arg(value=read, keyword=None, star="")]) if _is_integer(context, read):
            is_float = (isinstance(func, cst.Name) and func.value == "float") or context.dotted(func) == "numpy.float"
            return is_float and (_assigned_name(context) is not None or _joins_tensor(context) or _is_returned(context))
    return False


def _is_returned(context: Context) -> bool:
    """Whether what is computed from the call being left, by arithmetic alone, is all that a function gives."""
    if not context.functions or context.constructing:
        return False
    around = next((node for node in reversed(context.stack) if not isinstance(node, ARITHMETIC)), None)
    return isinstance(around, cst.Return)


def _is_integer(context: Context, node: cst.BaseExpression) -> bool:
    """Whether an original expression was an integer tensor without axes and nothing else."""
    fact = context.observed(node)
    if fact is None or not is_tensor(fact) or any(fact.shapes):
        return False
    return bool(fact.dtypes) and set(fact.dtypes) <= INTEGERS


def _assigned_name(context: Context) -> str | None:
    """The local name that takes what is computed from the call being left."""
    around = [node for node in reversed(context.stack) if not isinstance(node, ARITHMETIC)]
    match around[:1]:
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))])]:
            return name
    return None


def _meets_float(context: Context, call: cst.Call) -> bool:
    """Whether the other side of the arithmetic around the call being left is a float of Python, or becomes one of its weak type."""
    around = context.stack[-1]
    if not isinstance(around, cst.BinaryOperation) or not isinstance(around.operator, WIDENING):
        return False
    # Of two numbers that are read out, the one on the right becomes the float.
    return _is_float(context, around.right, read=True) if around.left is call else _is_float(context, around.left, read=False)


def _is_float(context: Context, node: cst.BaseExpression, read: bool) -> bool:
    match node:
        case cst.Float():
            return True
        case cst.Call(func=cst.Name("float"), args=[cst.Arg(value=value, keyword=None, star="")]):
            fact = context.observed(value)
            return (read and _is_integer(context, value)) or (fact is not None and set(fact.kinds) <= {"int", "float"})
        case cst.BinaryOperation(left=left, operator=operator, right=right) if isinstance(operator, WIDENING):
            return any(isinstance(side, cst.Float) for side in (left, right))
    return False


def _joins_tensor(context: Context) -> bool:
    """Whether the arithmetic around the call being left gives a tensor."""
    around = context.stack[-1]
    return isinstance(around, cst.BinaryOperation) and is_tensor(context.observed(around))
