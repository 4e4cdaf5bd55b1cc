"""Numbers that are read out of a tensor only to be handed back: `losses.append(loss.item())`, `logs["loss"] = float(loss)`."""

from __future__ import annotations

import math

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule

FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
DISPLAYS = (cst.Tuple, cst.List, cst.Dict, cst.Element, cst.DictElement)


class HandBackNumbers(Rule):
    """Keep what is handed back as an array: `losses.append(loss.item())` → `losses.append(jax.lax.stop_gradient(loss))`, for a tensor of floats with one element.

    Under `jit` no value can be read. Declines where anything is computed from the number, or may be, and in code that Python runs.
    """

    KEEP = ("def f(x, logs):\n    logs.append(float(x))\n    return logs\n",)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not hands_back(self.context, original):
            return None
        value = updated.args[0].value if updated.args else cst.ensure_type(updated.func, cst.Attribute).value
        fact = self.context.observed(_read(original) or original)
        has_axes = fact is not None and any(fact.shapes)
        return self.context.build("lax.stop_gradient({x}.reshape(()))" if has_axes else "lax.stop_gradient({x})", x=value)


def hands_back(context: Context, call: cst.Call) -> bool:
    """Whether an original call, the one that is being left, reads a number out of a tensor of floats only to hand it back."""
    read = _read(call)
    if read is None or context.at_host or context.constructing or not context.functions or not _is_handed_back(context):
        return False
    fact = context.observed(read)
    if fact is None or not is_tensor(fact) or not fact.dtypes or not set(fact.dtypes) <= FLOATS:
        return False
    return bool(fact.shapes) and all(math.prod(shape) == 1 for shape in fact.shapes)


def _read(call: cst.Call) -> cst.BaseExpression | None:
    """What `.item()` or `float(…)` reads."""
    match call:
        case cst.Call(func=cst.Attribute(value=read, attr=cst.Name("item")), args=[]):
            return read
        case cst.Call(func=cst.Name("float"), args=[cst.Arg(value=read, keyword=None, star="")]):
            return read
    return None


def _is_handed_back(context: Context) -> bool:
    """Whether the expression being left is returned, appended to a list, or an entry of a list, tuple or dictionary."""
    around = [node for node in reversed(context.stack) if not isinstance(node, DISPLAYS)]
    inside = len(around) < len(context.stack) and isinstance(context.stack[-1], (cst.Element, cst.DictElement))
    match around[:3]:
        case [cst.Return(), *_]:
            return True
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name())]), *_]:
            return inside
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=holder))]), *_]:
            return _holds(context, holder, {"dict", "list"})
        case [cst.Arg(keyword=None), cst.Call(func=cst.Attribute(value=holder, attr=cst.Name("append")), args=[_]), cst.Expr()]:
            return _holds(context, holder, {"list"})
    return False


def _holds(context: Context, node: cst.BaseExpression, kinds: set[str]) -> bool:
    fact = context.observed(node)
    return fact is not None and bool(fact.kinds) and set(fact.kinds) <= kinds
