"""Values for the weight of one of Flax's own layers, computed in its own layout in place of torch's where no layout matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrate_agent.tools.rewrite.rules.parameters.plain_values import fan_values
from migrate_agent.tools.rewrite.rules.rule import Rule

SHAPELESS = frozenset({"init_normal", "init_uniform", "init_trunc_normal", "full_like", "zeros_like", "ones_like"})
"""Functions that take an array or variable for its shape and dtype, and whose values are alike in each layout."""


def _called(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else getattr(call.func, "value", "")


def in_own_layout(
    rule: Rule, value: cst.BaseExpression, reads: Sequence[cst.BaseExpression], target: cst.Subscript
) -> cst.BaseExpression | None:
    """The value for a kernel, computed in its own layout, where no layout matters or JAX counts its fans; None for any other."""
    if isinstance(value, cst.Call) and len(value.args) > 1 and any(value.args[1].value.deep_equals(like) for like in (*reads, target)):
        if (of_fans := fan_values(rule.context, _called(value), value, target.value)) is not None:
            return of_fans
    if (scaled := _with_numbers(value, reads, target)) is not None:
        return scaled
    likes = _Likes((*reads, target), target.value)
    own = value.visit(likes)
    return own if isinstance(own, cst.BaseExpression) and likes.replaced and not likes.others else None


def _with_numbers(value: cst.BaseExpression, reads: Sequence[cst.BaseExpression], target: cst.Subscript) -> cst.BaseExpression | None:
    """`m.kernel[...] * 0.1` of `m.kernel[...].T * 0.1`, and `jnp.clip(m.kernel[...], -1, 1)`: elements and written numbers; None for any other value."""

    def is_read(node: cst.BaseExpression) -> bool:
        return any(node.deep_equals(read) for read in reads)

    match value:
        case cst.BinaryOperation(left=left, right=right) if is_read(left) and _is_number(right):
            return value.with_changes(left=target.deep_clone())
        case cst.BinaryOperation(left=left, right=right) if is_read(right) and _is_number(left):
            return value.with_changes(right=target.deep_clone())
        case cst.Call(args=[first, *rest]) if _called(value) in ("clip", "clamp") and is_read(first.value):
            if all(_is_number(argument.value) for argument in rest):
                return value.with_changes(args=[first.with_changes(value=target.deep_clone()), *rest])
    return None


def _is_of_jax(call: cst.Call) -> bool:
    return cst.Module([]).code_for_node(call.func).startswith(("jax.", "jnp.")) or _called(call) in SHAPELESS


def _is_number(node: cst.BaseExpression) -> bool:
    return isinstance(node.expression if isinstance(node, cst.UnaryOperation) else node, (cst.Integer, cst.Float))


class _Likes(cst.CSTTransformer):
    """Puts a variable in the place of expressions for its values, where these give a shape or dtype to what has no layout: `jnp.zeros_like(w)`,
    `jax.random.normal(key, w.shape)`. `others`: whether any stands elsewhere.
    """

    def __init__(self, likes: Sequence[cst.BaseExpression], variable: cst.BaseExpression) -> None:
        self.likes, self.variable = likes, variable
        self.replaced = self.others = False
        self.fitting: set[int] = set()

    def visit_Call(self, node: cst.Call) -> None:
        for argument in node.args:
            match argument.value:
                # A function of the user's may read which axis is which.
                case cst.Attribute(value=like, attr=cst.Name("shape" | "dtype")) if self._is_like(like) and _is_of_jax(node):
                    self.fitting.add(id(like))
                case like if _called(node) in SHAPELESS and self._is_like(like):
                    self.fitting.add(id(like))

    def _is_like(self, node: cst.CSTNode) -> bool:
        return any(node.deep_equals(like) for like in self.likes)

    def on_visit(self, node: cst.CSTNode) -> bool:
        super().on_visit(node)
        return not self._is_like(node)

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> Any:
        if not self._is_like(original):
            return super().on_leave(original, updated)
        fits = id(original) in self.fitting
        self.replaced, self.others = self.replaced or fits, self.others or not fits
        return self.variable.deep_clone() if fits else updated
