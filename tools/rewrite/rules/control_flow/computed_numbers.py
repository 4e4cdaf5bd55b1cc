"""Numbers that are read out of a tensor only to go where an array may: `x / x.std().item()`, `torch.roll(x, shift)` after `shift = int(i)`."""

from __future__ import annotations

import ast
import math

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.number_uses import Step, Use, number_uses
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.types import Observed

FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
INTEGERS = frozenset({"int32", "int64"})
"""Not those that are so narrow that their sums may not fit."""
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
SUMS = (ast.Add, ast.Sub)
PLACES = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
"""Operators of places in an array, which are small; other integers may be too large for their product."""
EXTREMES = {"max": "jnp.maximum({a}, {b})", "min": "jnp.minimum({a}, {b})"}
CASTS = frozenset({"float", "double", "half", "bfloat16", "type", "type_as"})
"""Methods after which two tensors may have other dtypes in other precisions, though they have one in what was observed."""
FRESH = frozenset(f"torch.{name}" for name in "tensor zeros ones full rand randn normal linspace eye empty as_tensor from_numpy".split())
"""Functions whose result has a dtype of its own, whatever that of the module."""


class ComputeWithArrays(Rule):
    """Keep a number an array where only arithmetic with arrays takes it: `x / x.std().item()` → `x / jax.lax.stop_gradient(jnp.std(x, ddof=1))`.

    So with `float(…)` and `tolist()[i][j]`, and by way of local names and of arithmetic with other numbers. Torch's number has no gradient, and it
    leaves the dtype of the other side alone. So the rule declines where both may be of other dtypes: where they were, or where the function casts or makes
    tensors. An integer may index a tensor too, or roll it. The rule declines where anything else takes the number, and in code that Python runs.
    """

    KEEP = ("def f(x, y):\n    return y / float(x)\n", "def f(x, i):\n    k = int(i)\n    return x[k]\n")

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if (extreme := self._extreme(original, updated)) is not None:
            return extreme
        read = _read(original)
        if read is None or not computes_with_arrays(self.context, original):
            return None
        value = updated.args[0].value if updated.args else cst.ensure_type(updated.func, cst.Attribute).value
        if _read(read) is not None:
            return value  # `float(x.item())`: the inner call has become an array
        fact = self.context.observed(read)
        return self._array(value, fact, fact is not None and any(fact.shapes))

    def _extreme(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """`jnp.maximum(a, b)` of `max(a, b)`, where one of the two has become an array."""
        func, numbers = original.func, [argument.value for argument in original.args]
        if not isinstance(func, cst.Name) or func.value not in EXTREMES or len(numbers) != 2:
            return None
        if not any(isinstance(one, cst.Call) and computes_with_arrays(self.context, one) for one in numbers):
            return None
        return self.context.build(EXTREMES[func.value], a=updated.args[0].value, b=updated.args[1].value)

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        before, after = listed(original), listed(updated)
        if before is None or after is None or not computes_with_arrays(self.context, original):
            return None
        read, indices = after
        element = cst.Subscript(read, [cst.SubscriptElement(cst.Index(index)) for index in indices])
        return self._array(element, self.context.observed(before[0]), False)

    def _array(self, value: cst.BaseExpression, fact: Observed | None, has_axes: bool) -> cst.BaseExpression:
        template = "{x}.reshape(())" if has_axes else "{x}"
        if fact is None or not set(fact.dtypes) <= INTEGERS:
            template = f"lax.stop_gradient({template})"
        return self.context.parenthesise(self.context.build(template, x=value))


def computes_with_arrays(context: Context, node: cst.Call | cst.Subscript) -> bool:
    """Whether an original expression, the one that is being left, reads a number out of a tensor only to go where an array may."""
    fact, function = _number_read(context, node), context.function
    if fact is None or function is None or context.at_host or context.constructing:
        return False
    span, lines = context.span(node), context.file.lines
    number = next((one for one in ast.walk(function) if isinstance(one, ast.expr) and span_of(one, lines) == span), None)
    whole = set(fact.dtypes) <= INTEGERS
    if number is None or (not whole and _casts(context, function)):
        return False
    outermost = _outermost(function, number, "int" if whole else "float")
    uses = number_uses(function, outermost, lambda one: is_tensor(_observed(context, one)))
    takes = _takes_integer if whole else _takes_float
    return bool(uses) and all(takes(context, use, fact) for use in uses or ())


# -- what is read -------------------------------------------------------------------------------------------------------


def _number_read(context: Context, node: cst.Call | cst.Subscript) -> Observed | None:
    """The tensor of one element, or of which one element is taken, that a number of its own kind is read out of."""
    read, count = _listed_count(node) if isinstance(node, cst.Subscript) else (_read(node), 0)
    if isinstance(read, cst.Call) and not count:
        read = _read(read) or read
    fact = context.observed(read) if read is not None else None
    if fact is None or not is_tensor(fact) or "none" in fact.kinds or len(fact.dtypes) != 1 or not fact.shapes:
        return None
    called = node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) else ""
    # `int(x)` and `float(i)` make another number of it.
    if not set(fact.dtypes) <= {"": FLOATS | INTEGERS, "float": FLOATS, "int": INTEGERS}[called]:
        return None
    return fact if all(len(shape) == count if count else math.prod(shape) == 1 for shape in fact.shapes) else None


def _read(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What `.item()`, `float(…)` or `int(…)` reads."""
    match node:
        case cst.Call(func=cst.Attribute(value=read, attr=cst.Name("item")), args=[]):
            return read
        case cst.Call(func=cst.Name("float" | "int"), args=[cst.Arg(value=read, keyword=None, star="")]):
            return read
    return None


def listed(node: cst.BaseExpression) -> tuple[cst.BaseExpression, tuple[cst.BaseExpression, ...]] | None:
    """`x` and the indices of `x.tolist()[i][j]`."""
    indices: list[cst.BaseExpression] = []
    while True:
        match node:
            case cst.Subscript(value=inner, slice=[cst.SubscriptElement(slice=cst.Index(value=index, star=None))]):
                indices.insert(0, index)
                node = inner
            case cst.Call(func=cst.Attribute(value=read, attr=cst.Name("tolist")), args=[]) if indices:
                return read, tuple(indices)
            case _:
                return None


def _listed_count(node: cst.Subscript) -> tuple[cst.BaseExpression | None, int]:
    elements = listed(node)
    return (None, 0) if elements is None else (elements[0], len(elements[1]))


def _outermost(function: ast.AST, number: ast.expr, name: str) -> ast.expr:
    """`float(x.item())` of `x.item()`, or the number itself."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(called), args=[one], keywords=[]) if one is number and called == name:
                return node
    return number


# -- what takes it ------------------------------------------------------------------------------------------------------


def _takes_float(context: Context, use: Use, fact: Observed) -> bool:
    if not all(_is_step(context, step, OPERATORS, frozenset({"int", "float"})) for step in use.steps):
        return False
    return isinstance(use.taker, ast.Name) or _other_dtypes(context, use) == set(fact.dtypes)


def _takes_integer(context: Context, use: Use, fact: Observed) -> bool:
    if all(_is_step(context, step, PLACES, frozenset({"int"})) for step in use.steps) and (_indexes(context, use) or _rolls(context, use)):
        return True
    if not all(_is_step(context, step, SUMS, frozenset({"int"})) for step in use.steps):
        return False
    others = _other_dtypes(context, use)
    return isinstance(use.taker, ast.Name) or (bool(others) and others <= FLOATS)


def _is_step(context: Context, step: Step, operators: tuple[type[ast.operator], ...], kinds: frozenset[str]) -> bool:
    """Whether a step of arithmetic between numbers is one that arrays have too."""
    if isinstance(step, ast.UnaryOp):
        return isinstance(step.op, (ast.USub, ast.UAdd))
    if isinstance(step, ast.Call):
        # Only beside what is read in the call itself is `max` taken for that of arrays.
        return any(map(_is_read, step.args)) and all(_is_number(context, side, frozenset({"int", "float"})) for side in step.args)
    return isinstance(step.op, operators) and all(_is_number(context, side, kinds) for side in (step.left, step.right))


def _is_read(node: ast.expr) -> bool:
    """Whether an expression is `x.item()`, `float(x)` or `int(x)`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="item") | ast.Name(id="float" | "int")):
            return True
    return False


def _is_number(context: Context, node: ast.expr, kinds: frozenset[str]) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value).__name__ in kinds
    fact = _observed(context, node)
    return fact is not None and bool(fact.kinds) and set(fact.kinds) <= kinds


def _other_dtypes(context: Context, use: Use) -> set[str]:
    """The dtypes of the tensor that a use computes with; none where it does something else."""
    other = use.other()
    if other is None or not isinstance(use.taker, (ast.BinOp, ast.AugAssign)) or not isinstance(use.taker.op, OPERATORS):
        return set()
    fact = _observed(context, other)
    return set(fact.dtypes) if fact is not None and is_tensor(fact) and "none" not in fact.kinds else set()


def _indexes(context: Context, use: Use) -> bool:
    """Whether a use takes a part of a tensor, beside slices and other integers alone."""
    match use.taker:
        case ast.Subscript(value=value, slice=index, ctx=ast.Load()) if index is (use.display or use.number):
            others = [one for one in (use.display.elts if use.display else []) if one is not use.number]
            plain = all(isinstance(one, (ast.Slice, ast.Constant)) or _is_number(context, one, frozenset({"int"})) for one in others)
            return plain and is_tensor(_observed(context, value))
    return False


def _rolls(context: Context, use: Use) -> bool:
    """Whether a use is how far a tensor is rolled."""
    shift = use.display or use.number
    match use.taker:
        case ast.Call(func=func, args=args, keywords=keywords):
            method = isinstance(func, ast.Attribute) and func.attr == "roll" and is_tensor(_observed(context, func.value))
            named = [keyword.value for keyword in keywords if keyword.arg == "shifts"]
            dotted = context.facts.dotted.get(span_of(func, context.file.lines), "")
            return (method or dotted == "torch.roll") and any(one is shift for one in [*args[0 if method else 1 :][:1], *named])
    return False


# -- dtypes -------------------------------------------------------------------------------------------------------------


def _casts(context: Context, function: ast.AST) -> bool:
    """Whether tensors of a function may have other dtypes, in another precision, than what was observed says."""
    return any(_casts_here(context, node) for node in ast.walk(function) if isinstance(node, ast.Call))


def _casts_here(context: Context, call: ast.Call) -> bool:
    if any(keyword.arg == "dtype" for keyword in call.keywords):
        return True
    if context.facts.dotted.get(span_of(call.func, context.file.lines), "") in FRESH:
        fact = _observed(context, call)
        return fact is None or bool(FLOATS & set(fact.dtypes))
    match call.func:
        case ast.Attribute(attr="to"):
            facts = [_observed(context, one) for one in call.args]
            return not all(fact is not None and set(fact.kinds) <= {"device", "str", "bool"} for fact in facts)
        case ast.Attribute(attr=method):
            return method in CASTS
    return False


def _observed(context: Context, node: ast.expr) -> Observed | None:
    return context.facts.observed.get(span_of(node, context.file.lines))
