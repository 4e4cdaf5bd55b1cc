"""What a boolean mask selects: as many elements as the data say, which tracing cannot know."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rule
from migrate_agent.tools.rewrite.facts import is_tensor

REDUCTIONS = frozenset({"sum", "mean"})
FLOATS = frozenset({"float32", "float64", "float16", "bfloat16"})


class ReduceMaskedParts(Rule):
    """`x[mask].sum()` → `jnp.sum(x, where=mask)`, exact for masks of the tensor's own shape.

    Any other read of what a boolean mask selects is a hole of class `dynamic-shape`, unless the statement that it stands in was rewritten whole.
    """

    ORDER = 9
    KEEP = ("def f(x, mask):\n    return x[mask].sum\n",)

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> None:
        parent = self.context.parent()
        if isinstance(parent, (cst.AssignTarget, cst.Del)) or (isinstance(parent, cst.AugAssign) and parent.target is original):
            return
        if self._selects(original) and not self._constructing():
            reason = "a boolean mask selects a number of elements that depends on the data: use `jnp.where`, or a fixed size"
            self.context.hole(original, reason, "dynamic-shape")

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        func = original.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in REDUCTIONS:
            return None
        part, new = self._reduced(original, updated)
        if part is None or new is None or not self._selects(part) or not self._whole(part):
            return None
        index = new.slice[0].slice
        assert isinstance(index, cst.Index)
        self._forget(part)
        return self.context.build(f"jnp.{func.attr.value}({{x}}, where={{mask}})", x=new.value, mask=index.value)

    def _reduced(self, original: cst.Call, updated: cst.Call) -> tuple[cst.Subscript | None, cst.Subscript | None]:
        """What `x[mask].sum()` or `torch.sum(x[mask])` reduces, before and after rewriting."""
        old: cst.BaseExpression | None = None
        new: cst.BaseExpression | None = None
        if not original.args and isinstance(original.func, cst.Attribute) and isinstance(updated.func, cst.Attribute):
            old, new = original.func.value, updated.func.value
        elif len(original.args) == 1 and not original.args[0].keyword and self.context.dotted(original.func).startswith("torch."):
            old, new = original.args[0].value, updated.args[0].value
        return (old, new) if isinstance(old, cst.Subscript) and isinstance(new, cst.Subscript) else (None, None)

    def _selects(self, node: cst.Subscript) -> bool:
        """Whether an index is a boolean tensor."""
        if not is_tensor(self.context.observed(node.value)):
            return False
        facts = [self.context.observed(e.slice.value) for e in node.slice if isinstance(e.slice, cst.Index)]
        return any(fact is not None and is_tensor(fact) and "bool" in fact.dtypes and any(fact.shapes) for fact in facts)

    def _whole(self, node: cst.Subscript) -> bool:
        """Whether the mask has the shape of the (floating) tensor."""
        index = node.slice[0].slice
        if len(node.slice) != 1 or not isinstance(index, cst.Index):
            return False
        tensor, mask = self.context.observed(node.value), self.context.observed(index.value)
        if tensor is None or mask is None or not tensor.dtypes or not set(tensor.dtypes) <= FLOATS:
            return False
        return bool(tensor.shapes) and tensor.shapes == mask.shapes

    def _forget(self, node: cst.CSTNode) -> None:
        span = self.context.span(node)
        self.context.holes[:] = [hole for hole in self.context.holes if not (hole.code == "dynamic-shape" and hole.span == span)]

    def _constructing(self) -> bool:
        context = self.context
        return (context.file.file.path, ".".join(context.path)) in context.randomness.constructing


class SettleMaskedWrites(Rule):
    """After `x[mask] = x[mask] * 2` became one masked value, its reads of what the mask selects are no holes."""

    ORDER = 61
    CHECKS = ("leave_Assign", "leave_AugAssign")
    KEEP = ("def f(x, mask):\n    x[mask] = x[mask] + 1\n",)

    def leave_Assign(self, original: cst.Assign, updated: cst.BaseSmallStatement) -> None:
        self._settle(original, original.targets[0].target, updated)

    def leave_AugAssign(self, original: cst.AugAssign, updated: cst.BaseSmallStatement) -> None:
        self._settle(original, original.target, updated)

    def _settle(self, original: cst.BaseSmallStatement, target: cst.BaseExpression, updated: cst.BaseSmallStatement) -> None:
        first = updated.nodes[0] if isinstance(updated, cst.FlattenSentinel) else updated
        value = first.value if isinstance(first, cst.Assign) else None
        if not isinstance(target, cst.Subscript) or not isinstance(value, cst.Call) or not isinstance(value.func, cst.Name):
            return
        if value.func.value != "masked_set":
            return
        span = self.context.span(original)
        self.context.holes[:] = [
            hole
            for hole in self.context.holes
            if not (hole.code == "dynamic-shape" and span.line <= hole.span.line and hole.span.end_line <= span.end_line)
        ]
