"""What a boolean mask selects: as many elements as the data say, which tracing cannot know."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.apply_tables import bare
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.indexing.constructed_masks import is_static, selects_statically
from migrate_agent.tools.rewrite.rules.indexing.known_masks import known_selections
from migrate_agent.tools.rewrite.rules.indexing.masked_reductions import Reduction, mask_of, reduction, selection, selects, selects_alike
from migrate_agent.tools.rewrite.rules.indexing.padded_rows import padded_read
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.types import Span


class ReduceMaskedParts(Rule):
    """Reduce what a mask selects: `x[mask].sum()`, `x.masked_select(mask).sum()` → `jnp.sum(x, where=mask)`.

    Likewise what is computed element by element from parts that one mask selects. Inside a computation the
    other elements get the value of a selected one, so that neither they nor their gradients make NaN:
    `(x[mask] - y[mask]).abs().mean()` → `jnp.mean(jnp.abs(fill_unselected(x, mask) - fill_unselected(y, mask)), where=mask)`.
    Declines (a hole of class `dynamic-shape`) for any other read of what a boolean mask selects, unless the
    whole statement was rewritten.
    """

    KEEP = ("def f(x, mask):\n    return x[mask].sum\n",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.masks: dict[Span, cst.BaseExpression] = {}
        """Where a masked part stands → its mask, rewritten."""

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        parent = self.context.parent()
        # Writes are for `ReplaceInplaceUpdates`.
        written = isinstance(parent, (cst.AssignTarget, cst.Del)) or (isinstance(parent, cst.AugAssign) and parent.target is original)
        if written or self.context.unpacked_into(original):
            return None
        if not selects(self.context, original) or self.context.constructing:
            # Places that a mask selects are the mask itself by now (`NameMasks`).
            return padded_read(self.context, original, updated)
        around, mask = self._reduction_around(original), mask_of(updated)
        # `ComputeMasksAtOnce` makes such a mask concrete, `KeepMasksStatic` keeps it so: what it selects has a size while tracing.
        if (around is None or mask is None) and (self._is_known_mask(original) or selects_statically(self.context, original)):
            return None
        if (around is None or mask is None) and (rows := padded_read(self.context, original, updated)) is not None:
            return rows
        if (around is None or mask is None) and self.context.at_host:
            return None
        if around is None or mask is None:
            reason = "a boolean mask selects a number of elements that depends on the data: use `jnp.where`, or a fixed size"
            self.context.hole(original, reason, "dynamic-shape")
            return None
        return self._left_whole(original, around, updated.value, mask)

    def _left_whole(
        self, original: cst.BaseExpression, around: Reduction, value: cst.BaseExpression, mask: cst.BaseExpression
    ) -> cst.BaseExpression:
        """All elements, in the place of those that the mask selects."""
        self.masks[self.context.span(original)] = mask
        # Nothing is computed with the other elements before the reduction leaves them out.
        if around.operands == (original,):
            return value
        return self.context.build("vendored.fill_unselected({x}, {mask})", x=value, mask=mask)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if selects_alike(self.context, original) and not self.context.constructing:
            around, (whole, selector) = self._reduction_around(original), selection(updated)
            if around is None and whole is not None and selector is not None and self._selected_statically(original):
                return self.context.build("{x}[{mask}]", x=whole, mask=selector)
            return None if around is None or whole is None or selector is None else self._left_whole(original, around, whole, selector)
        masked = reduction(self.context, original)
        if masked is None or not all(self.context.span(part) in self.masks for part in masked.parts):
            return None
        mask: cst.BaseExpression = self.masks[self.context.span(masked.parts[0])]
        if masked.trailing:
            mask = self.context.build(f"{{mask}}[..., {', '.join(['None'] * masked.trailing)}]", mask=mask)
        if len(masked.operands) == 2:
            return self.context.build(masked.template, x=updated.args[0].value, y=updated.args[1].value, mask=mask)
        if masked.operands[0] is not getattr(original.func, "value", None):
            return self.context.build(masked.template, x=updated.args[0].value, mask=mask)
        return self.context.build(masked.template, x=bare(cst.ensure_type(updated.func, cst.Attribute).value), mask=mask)

    def _selected_statically(self, call: cst.Call) -> bool:
        mask = selection(call)[1]
        return mask is not None and is_static(self.context, mask)

    def _is_known_mask(self, part: cst.Subscript) -> bool:
        index = part.slice[0].slice
        return (
            len(part.slice) == 1
            and isinstance(index, cst.Index)
            and self.context.span(index.value) in known_selections(self.context).indices
        )

    def _reduction_around(self, part: cst.BaseExpression) -> Reduction | None:
        """The innermost call around an original expression that reduces it, with whatever else is computed from it."""
        for node in reversed(self.context.stack):
            if not isinstance(node, (cst.BaseExpression, cst.Arg, cst.ComparisonTarget)):
                return None
            masked = reduction(self.context, node) if isinstance(node, cst.Call) else None
            if masked is not None and any(one is part for one in masked.parts):
                return masked
        return None


MASKED = m.Call(func=m.Name("masked_set") | m.Attribute(m.Name("jnp"), m.Name("where")))
"""What the statement `x[mask] = value` has become."""


class CloseMaskedWrites(Rule):
    """Close the holes of a masked update: after `x[mask] = x[mask] * 2` → `masked_set(x, mask, x * 2)`, reads of `x[mask]` in it are no holes.

    Declines where the statement did not become one masked value.
    """

    CHECKS = ("leave_Assign", "leave_AugAssign")
    KEEP = ("def f(x, mask):\n    x[mask] = x[mask] + 1\n",)

    def leave_Assign(self, original: cst.Assign, updated: cst.BaseSmallStatement) -> None:
        self._close_holes(original, original.targets[0].target, updated)

    def leave_AugAssign(self, original: cst.AugAssign, updated: cst.BaseSmallStatement) -> None:
        self._close_holes(original, original.target, updated)

    def _close_holes(self, original: cst.BaseSmallStatement, target: cst.BaseExpression, updated: cst.BaseSmallStatement) -> None:
        first = updated.nodes[0] if isinstance(updated, cst.FlattenSentinel) else updated
        value = first.value if isinstance(first, cst.Assign) else None
        if not isinstance(target, cst.Subscript) or not m.matches(value, MASKED):  # type: ignore[arg-type]
            return
        span = self.context.span(original)
        self.context.holes[:] = [
            hole
            for hole in self.context.holes
            if not (hole.code == "dynamic-shape" and span.line <= hole.span.line and hole.span.end_line <= span.end_line)
        ]
