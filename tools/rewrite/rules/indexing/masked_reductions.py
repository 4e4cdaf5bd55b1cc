"""Numbers that are computed element by element from what boolean masks select, and then reduced: `(x[mask] - y[mask]).abs().mean()`.

How many elements a mask selects is known to no trace, but a reduction needs only to leave the others out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.context import Context

REDUCTIONS = {
    "sum": "jnp.sum({x}, where={mask})",
    "mean": "jnp.mean({x}, where={mask})",
    "prod": "jnp.prod({x}, where={mask})",
    # `jnp.max` and `jnp.min` want a value for an empty selection.
    "max": "jnp.max({x}, where={mask}, initial=-jnp.inf)",
    "amax": "jnp.max({x}, where={mask}, initial=-jnp.inf)",
    "min": "jnp.min({x}, where={mask}, initial=jnp.inf)",
    "amin": "jnp.min({x}, where={mask}, initial=jnp.inf)",
    # Torch corrects by default, JAX does not.
    "std": "jnp.std({x}, where={mask}, ddof=1)",
    "var": "jnp.var({x}, where={mask}, ddof=1)",
}
"""Of everything that is selected, by torch's name, for floating numbers."""
COUNTS = {"sum": REDUCTIONS["sum"]}
"""The same for integers, and for booleans, which are counted."""
QUESTIONS = {"any": "jnp.any({x}, where={mask})", "all": "jnp.all({x}, where={mask})"}
"""The same for booleans."""
LOSSES = {
    "torch.nn.functional.mse_loss": "jnp.{reduction}(jnp.square({x} - {y}), where={mask})",
    "torch.nn.functional.l1_loss": "jnp.{reduction}(jnp.abs({x} - {y}), where={mask})",
}
"""Losses that compare element by element."""
ELEMENTWISE = frozenset(
    """abs absolute acos asin atan ceil clamp clamp_max clamp_min clip cos cosh detach double erf exp expm1 float floor log log10 log1p log2 mul
    add sub subtract multiply div divide true_divide maximum minimum neg negative pow reciprocal relu round rsqrt sigmoid sign sin sinh softplus
    sqrt square tan tanh logsigmoid eq ne lt gt le ge logical_not""".split()
)
OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power)
COMPARISONS = (cst.Equal, cst.NotEqual, cst.LessThan, cst.GreaterThan, cst.LessThanEqual, cst.GreaterThanEqual)
INTEGERS = frozenset({"int64", "int32"})
FLOATS = frozenset({"float32", "float64", "float16", "bfloat16"})


@dataclass(frozen=True)
class Reduction:
    """A call that reduces what masks select: its operands, the selections in them, and the template that leaves the others out."""

    operands: tuple[cst.BaseExpression, ...]
    parts: tuple[cst.BaseExpression, ...]
    template: str
    trailing: int
    """Axes of the operands behind those that the mask goes over."""


class _Unknown(Exception):
    """Something stands there that is not computed element by element."""


def reduction(context: Context, call: cst.Call) -> Reduction | None:
    """What an original call reduces, where all of it is selected by one mask."""
    operands, template = _reduction_call(context, call)
    try:
        parts = tuple(part for operand in operands for part in _masked_parts(context, operand))
    except _Unknown:
        return None
    ranks = {_rank(context, part) for part in parts}
    masks = {cst.Module([]).code_for_node(mask) for part in parts if (mask := selection(part)[1]) is not None}
    # Two masks may select different elements, and broadcasting operands would be counted more than once.
    if len(masks) != 1 or len(ranks) != 1 or not all(_rank(context, operand) in ranks for operand in operands):
        return None
    return Reduction(operands, parts, template, ranks.pop() - 1)


def selects(context: Context, node: cst.Subscript) -> bool:
    """Whether an index of an original subscript is a boolean tensor."""
    if not is_tensor(context.observed(node.value)):
        return False
    facts = [context.observed(e.slice.value) for e in node.slice if isinstance(e.slice, cst.Index)]
    return any(fact is not None and is_tensor(fact) and "bool" in fact.dtypes and any(fact.shapes) for fact in facts)


def mask_of(node: cst.Subscript) -> cst.BaseExpression | None:
    """The only index of a subscript."""
    index = node.slice[0].slice
    return index.value if len(node.slice) == 1 and isinstance(index, cst.Index) else None


def selection(node: cst.BaseExpression) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """What is selected from and by which mask, in `x[mask]`, `x.masked_select(mask)` and `torch.masked_select(x, mask)`."""
    match node:
        case cst.Subscript():
            return node.value, mask_of(node)
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name("masked_select")), args=[cst.Arg(value=mask, star="")]):
            return value, mask
        case cst.Call(
            func=cst.Attribute(attr=cst.Name("masked_select")), args=[cst.Arg(value=value, keyword=None), cst.Arg(value=mask, keyword=None)]
        ):
            return value, mask
    return None, None


def selects_alike(context: Context, call: cst.Call) -> bool:
    """Whether an original `masked_select` was seen to take a mask of the same shape as what it selects from, so that nothing is broadcast."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "masked_select":
        return False
    of_torch = context.dotted(call.func) == "torch.masked_select"
    if len(call.args) != 1 + of_torch:
        return False
    facts = [context.observed(one) if one is not None else None for one in selection(call)]
    shapes = [set(fact.shapes) for fact in facts if fact is not None and is_tensor(fact)]
    # Broadcasting gives one of the two a shape that the other never has, or another number of axes.
    return len(shapes) == 2 and shapes[0] == shapes[1] and len({len(shape) for shape in shapes[0]}) == 1


def _reduction_call(context: Context, call: cst.Call) -> tuple[tuple[cst.BaseExpression, ...], str]:
    """What a call reduces, and how; nothing where it is no reduction of everything to one number."""
    name = context.dotted(call.func)
    if name in LOSSES:
        return _loss_of_two(call, LOSSES[name])
    if not isinstance(call.func, cst.Attribute) or call.args[1 if name.startswith("torch.") else 0 :]:
        return (), ""
    torch_name = name.removeprefix("torch.") if name.startswith("torch.") else call.func.attr.value
    operand = call.args[0].value if name.startswith("torch.") and call.args and not call.args[0].keyword else call.func.value
    fact = context.observed(operand)
    kinds = set(fact.dtypes) if fact is not None and is_tensor(fact) else set()
    table = (
        REDUCTIONS
        if kinds and kinds <= FLOATS
        else COUNTS | QUESTIONS
        if kinds == {"bool"}
        else COUNTS
        if kinds and kinds <= INTEGERS
        else {}
    )
    return ((operand,), table[torch_name]) if torch_name in table else ((), "")


def _loss_of_two(call: cst.Call, template: str) -> tuple[tuple[cst.BaseExpression, ...], str]:
    named = {argument.keyword.value: argument.value for argument in call.args if argument.keyword}
    positional = [argument.value for argument in call.args if not argument.keyword and not argument.star]
    mode = named.pop("reduction", cst.SimpleString('"mean"'))
    kind = mode.evaluated_value if isinstance(mode, cst.SimpleString) else ""
    if len(positional) != 2 or named or kind not in ("mean", "sum") or any(argument.star for argument in call.args):
        return (), ""
    return tuple(positional), template.replace("{reduction}", str(kind))


def _rank(context: Context, node: cst.BaseExpression) -> int:
    """The number of axes that an original expression was always seen to have; -1 where that is not known."""
    fact = context.observed(node)
    ranks = {len(shape) for shape in fact.shapes} if fact is not None else set()
    return ranks.pop() if len(ranks) == 1 else -1


def _masked_parts(context: Context, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The selections in an expression that is computed from them element by element. Raises `_Unknown`."""
    if isinstance(node, cst.Subscript) and selects(context, node) and mask_of(node) is not None and _rank(context, node) > 0:
        yield node
        return
    if isinstance(node, cst.Call) and selects_alike(context, node):
        yield node
        return
    for inner in _operands_inside(context, node):
        yield from _masked_parts(context, inner)


def _operands_inside(context: Context, node: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    match node:
        case cst.BinaryOperation(left=left, operator=operator, right=right) if isinstance(operator, OPERATORS):
            return left, right
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return (inner,)
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]) if isinstance(
            operator, COMPARISONS
        ):
            return left, right
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(name)) as func, args=args) if name in ELEMENTWISE:
            arguments = tuple(argument.value for argument in args)
            return arguments if context.dotted(func).startswith("torch.") else (value, *arguments)
        case cst.Integer() | cst.Float():
            return ()
        case cst.Name() | cst.Attribute() if _is_scalar(context, node):
            return ()
    raise _Unknown


def _is_scalar(context: Context, node: cst.BaseExpression) -> bool:
    fact = context.observed(node)
    return fact is not None and (not any(fact.shapes) if is_tensor(fact) else bool(set(fact.kinds) <= {"int", "float", "bool"}))
