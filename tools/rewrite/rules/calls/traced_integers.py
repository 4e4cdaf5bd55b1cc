"""Integers that are read out of a tensor only to go where JAX takes an array as well."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule

INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8"})
ARITHMETIC = (cst.UnaryOperation, cst.BinaryOperation)


class KeepTracedIntegers(Rule):
    """Index and roll by arrays: `x[int(i)]` → `x[i]`, `torch.roll(x, -int(i), -1)` → the same of `i`, an integer tensor without axes.

    Declines where the number would size something, and where `i` was not observed.
    """

    KEEP = ("def f(x, i):\n    return x[int(i)]\n",)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
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
    fact = context.observed(read)
    if fact is None or not is_tensor(fact) or any(fact.shapes) or not fact.dtypes or not set(fact.dtypes) <= INTEGERS:
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
