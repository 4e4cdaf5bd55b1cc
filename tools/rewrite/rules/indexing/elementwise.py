"""What is computed element by element from the parts that one boolean mask selects, as the same over all elements."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.types import Observed

FUNCTIONS = frozenset(
    "abs acos acosh asin asinh atan atan2 atanh ceil cos cosh erf erfc erfinv exp exp2 expm1 floor lgamma log log10 log1p log2 logit maximum "
    "minimum neg pow reciprocal relu round rsqrt sigmoid sign sin sinh softplus sqrt square tan tanh trunc".split()
)
"""Functions and methods of torch that look at one element at a time."""
DEFINED = (cst.Add, cst.Subtract, cst.Multiply)
"""Operators that give finite numbers, and derivatives, of all finite numbers."""


def scalar(fact: Observed | None) -> bool:
    """Whether what was seen is one number."""
    if fact is None:
        return False
    return set(fact.kinds) <= {"int", "float", "bool"} or (is_tensor(fact) and bool(fact.shapes) and all(not s for s in fact.shapes))


def unmasked(context: Context, source: cst.BaseExpression, value: cst.BaseExpression, masks: tuple[str, str]) -> cst.BaseExpression | None:
    """`x[mask] * 2` as `x * 2`, `torch.log(x[mask])` as `jnp.log(fill_unselected(x, mask))`; `None` where an element may depend on others.

    `source` is the original, `value` its rewrite; `masks` are the mask's texts in both. What is not defined for all numbers is given such as
    the mask selects, so that it spoils no gradient.
    """
    if not is_elementwise(context, source, masks[0]):
        return None
    partial = _Partial()
    source.visit(partial)
    parts = _Parts(context, masks[1], fill=partial.found)
    result = value.visit(parts)
    return result if parts.count and isinstance(result, cst.BaseExpression) else None


def is_elementwise(context: Context, node: cst.BaseExpression, mask: str) -> bool:
    """Whether an original expression is computed element by element from parts that this mask (its text) selects, and from single numbers."""
    match node:
        case cst.Subscript() if _mask_text(node) == mask:
            return True
        case cst.Integer() | cst.Float():
            return True
        case cst.UnaryOperation(expression=inner):
            return is_elementwise(context, inner, mask)
        # A matrix product mixes elements.
        case cst.BinaryOperation(left=left, right=right) if not isinstance(node.operator, cst.MatrixMultiply):
            return is_elementwise(context, left, mask) and is_elementwise(context, right, mask)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)), args=args) if name in FUNCTIONS:
            plain = all(not argument.star and argument.keyword is None for argument in args)
            of_torch = context.dotted(node.func).startswith("torch.")
            operands = [argument.value for argument in args] if of_torch else [inner, *(argument.value for argument in args)]
            is_tensor_function = of_torch or (not context.dotted(node.func) and is_tensor(context.observed(inner)))
            return plain and is_tensor_function and all(is_elementwise(context, operand, mask) for operand in operands)
    return scalar(context.observed(node))


def _mask_text(part: cst.Subscript) -> str:
    return cst.Module([]).code_for_node(part.slice[0]) if len(part.slice) == 1 else ""


class _Partial(cst.CSTVisitor):
    """Whether something in an expression is not defined for all numbers."""

    found = False

    def visit_Call(self, node: cst.Call) -> None:
        self.found = True

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        self.found |= not isinstance(node.operator, DEFINED)


class _Parts(cst.CSTTransformer):
    """Puts whole arrays where a mask selects parts of them."""

    def __init__(self, context: Context, mask: str, fill: bool) -> None:
        super().__init__()
        self.context, self.mask, self.fill, self.count = context, mask, fill, 0

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        if _mask_text(updated_node) != self.mask:
            return updated_node
        self.count += 1
        index = updated_node.slice[0].slice
        if not self.fill or not isinstance(index, cst.Index):
            return updated_node.value
        return self.context.build("vendored.fill_unselected({x}, {mask})", x=updated_node.value, mask=index.value)
