"""What a boolean mask selects and the same mask takes again: computed for all rows, and written where the mask holds."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.masked_dataflow import NOTHING, MaskedRows, masked_rows
from migrate_agent.tools.rewrite.analysis.routing.mixing import may_mix_rows
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.control_flow.constants import leaves
from migrate_agent.tools.rewrite.rules.indexing.elementwise import is_elementwise
from migrate_agent.tools.rewrite.rules.rule import Rule


def padded_here(context: Context) -> MaskedRows:
    """`masked_rows` of the function that is being rewritten, found out once."""
    function = context.function
    if function is None or context.constructing:
        return NOTHING
    cache: dict[int, MaskedRows] = context.file.__dict__.setdefault("_padded_rows", {})
    if id(function) not in cache:
        cache[id(function)] = masked_rows(context.file, context.facts, function, may_mix_rows(context.repo, context.cls))
    return cache[id(function)]


def padded_read(context: Context, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
    """`x[mask]` → `padded_rows(x, mask)`, `x[mask, 0]` → `padded_rows(x, mask)[:, 0]`; `None` for a read that is no such."""
    if context.span(original) not in padded_here(context).reads or _is_elementwise_write(context, original):
        return None
    first, *rest = updated.slice
    if not isinstance(first.slice, cst.Index):
        return None
    rows = context.build("vendored.padded_rows({x}, {mask})", x=updated.value, mask=first.slice.value)
    context.notes.append(
        f"{context.file.file.path}:{context.span(original).line}: a row is computed for each place of the mask, and written where the mask holds"
    )
    if all(is_full(element) for element in rest):
        return rows
    every = cst.SubscriptElement(cst.Slice(None, None, None), cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    return cst.Subscript(rows, [every, *rest])


class NameMasks(Rule):
    """Keep the mask in the place of the places that it selects: `rows = torch.where(mask)` → `rows = mask`, where `x[rows]` and `y[rows] = …` are all uses.

    Declines where anything else is done with the places.
    """

    KEEP = ("import numpy as np\n\ndef f(x, y):\n    rows = np.where(x)\n    y[rows] = 1\n    return y\n",)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        indices = padded_here(self.context).indices
        if not indices:
            return None
        for before, after in [(one.value, other.value) for one, other in zip(original.args[:1], updated.args[:1], strict=True)]:
            if self.context.span(before) in indices.values():
                return self.context.parenthesise(after)
        if not isinstance(original.func, cst.Attribute) or not isinstance(updated.func, cst.Attribute):
            return None
        of_mask = self.context.span(original.func.value) in indices.values()
        return self.context.parenthesise(updated.func.value) if of_mask or self.context.span(original) in indices else None

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        return self.context.parenthesise(updated.value) if self.context.span(original) in padded_here(self.context).indices else None


def is_full(element: cst.SubscriptElement) -> bool:
    """`:` or `...`"""
    if isinstance(element.slice, cst.Slice):
        return element.slice.lower is None and element.slice.upper is None and element.slice.step is None
    return isinstance(element.slice, cst.Index) and isinstance(element.slice.value, cst.Ellipsis)


def _is_elementwise_write(context: Context, read: cst.Subscript) -> bool:
    """Whether the statement around a read is one masked value of whole arrays (`unmasked`), which needs no rows."""
    statement = next((node for node in reversed(context.stack) if isinstance(node, (cst.Assign, cst.AugAssign))), None)
    if statement is None:
        return False
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else statement.target
    if not isinstance(target, cst.Subscript) or len(target.slice) > 1 or len(read.slice) > 1:
        return False
    return is_elementwise(context, statement.value, cst.Module([]).code_for_node(target.slice[0]))


class ComputeWithoutAsking(Rule):
    """Compute rows without asking whether there are any: `if mask.any(): y[mask] = f(x[mask])` → `y = set_padded_rows(y, mask, f(padded_rows(x, mask)))`.

    Declines where a statement does anything else than write rows that the mask selects.
    """

    KEEP = ("def f(x, flag: bool):\n    if flag:\n        x = x + 1\n    return x\n",)
    # Which tensors are masks is only observed: `tests/tools/rewrite/fixtures/idioms/masks.py` has the cases.

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        if self.context.span(original) not in padded_here(self.context).guards or isinstance(self.context.parent(), cst.If):
            return None
        self.context.drop_holes(original.test)
        body = [statement for statement in updated.body.body if isinstance(statement, cst.BaseStatement)]
        only_skips = all(
            isinstance(small, (cst.Continue, cst.Pass)) for line in body if isinstance(line, cst.SimpleStatementLine) for small in line.body
        )
        if only_skips or not isinstance(updated.body, cst.IndentedBlock) or leaves(updated.body):
            return cst.RemoveFromParent() if only_skips else None
        first = body[0].with_changes(leading_lines=[*updated.leading_lines, *body[0].leading_lines])  # type: ignore[attr-defined]
        return cst.FlattenSentinel([first, *body[1:]])
