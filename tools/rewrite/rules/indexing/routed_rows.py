"""Rows that a mask routes to an expert: the expert is given all rows, and those that the mask does not select weigh nothing."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.routing.routed_rows import Routes, Weights, routed_rows
from migrate_agent.tools.rewrite.analysis.routing.row_functions import FileFacts
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.control_flow.constants import leaves
from migrate_agent.tools.rewrite.rules.mutation.writes import _Writes
from migrate_agent.tools.rewrite.tables.registry import Refuse

NOTE = "each expert is given all rows, and a weight of 0 for those that are not routed to it"


def routes_here(context: Context) -> Routes:
    """`routed_rows` of the function that is being rewritten, found out once."""
    function = context.function
    if function is None or context.constructing or context.at_host:
        return Routes()
    cache: dict[int, Routes] = context.file.__dict__.setdefault("_routed_rows", {})
    if id(function) not in cache:
        cache[id(function)] = routed_rows(context.repo, FileFacts(context.file, context.facts), function, context.cls)
    return cache[id(function)]


class WeighAllRows(_Writes):
    """Give an expert all rows: `rows, k = torch.where(mask)` and `out[rows] += f(x[rows]) * w[rows, k, None]` → one sum over the slots.

    `out = out + f(x) * jnp.sum(jnp.where(mask, w, 0), axis=-1, keepdims=True)`: a row that is not routed to the expert weighs nothing, and a test
    whether there are any goes. Declines where an expert is not known to act on each row alone, and where anything else is done with rows or places.
    """

    KEEP = (
        "import numpy as np\n\ndef f(x, mask, w, g):\n    out = x * 0\n    rows, k = np.where(mask)\n    out[rows] += g(x[rows]) * w[rows, k, None]\n"
        "    return out\n",
    )
    # Shapes are only observed: `tests/tools/rewrite/fixtures/experts` has the cases.

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        routes, span = routes_here(self.context), self.context.span(original)
        if span in routes.selections:
            whole = updated.args[0].value if updated.args and not updated.args[0].keyword else updated.func.value  # type: ignore[attr-defined]
            return self.context.parenthesise(whole)
        if span in routes.reads and isinstance(updated.func, cst.Attribute):
            return updated.func.value
        if span in routes.totals:
            return updated.args[2].value
        if span in routes.sums and isinstance(original.func, cst.Attribute):
            return self._sum(original.func.value, original.args[2].value, updated.args[2].value)
        return None

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        routes, span = routes_here(self.context), self.context.span(original)
        if span in routes.weights:
            return self._weights(routes, routes.weights[span], updated.value)
        return self.context.parenthesise(updated.value) if span in routes.reads else None

    def leave_Assign(
        self, original: cst.Assign, updated: cst.Assign
    ) -> cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseSmallStatement] | None:
        routes = routes_here(self.context)
        if self.context.span(original) not in routes.dropped:
            return None
        if self.context.span(original.value) not in routes.selections or self._mask_span(original.value, routes) in self._named(routes):
            return cst.RemoveFromParent()
        name = cst.AssignTarget(cst.Name(self._name()))
        return cst.FlattenSentinel([cst.Assign([name], updated.value)])

    def leave_AugAssign(self, original: cst.AugAssign, updated: cst.AugAssign) -> cst.BaseSmallStatement | None:
        if self.context.span(original) not in routes_here(self.context).sums or not isinstance(original.target, cst.Subscript):
            return None
        out = original.target.value
        try:
            return self._assign(out, self._receiver_form(out), self._sum(out, original.value, updated.value))
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        routes, span = routes_here(self.context), self.context.span(original)
        if span in routes.dropped:
            return cst.RemoveFromParent()
        if span not in routes.unwrapped or not isinstance(updated.body, cst.IndentedBlock) or leaves(updated.body):
            return None
        self.context.drop_holes(original.test)
        body = [statement for statement in updated.body.body if isinstance(statement, cst.BaseStatement)]
        first = body[0].with_changes(leading_lines=[*updated.leading_lines, *body[0].leading_lines])  # type: ignore[attr-defined]
        return cst.FlattenSentinel([first, *body[1:]])

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For | None:
        routes, span = routes_here(self.context), self.context.span(original)
        table, modules = routes.loops.get(span), routes.lists.get(span)
        count = self.context.build(f"{table}.shape[0]") if table else None
        if table:
            self.context.drop_holes(original.iter)
        elif modules and isinstance(updated.iter, cst.Call):
            count = updated.iter.args[0].value
        if count is None or (modules and cst.Module([]).code_for_node(count) == f"len({modules})"):
            return None
        text = f"range(min({{count}}, len({modules})))" if modules else "range({count})"
        return updated.with_changes(iter=self.context.build(text, count=count))

    def _sum(self, out: cst.BaseExpression, source: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseExpression:
        self.context.notes.append(f"{self.context.file.file.path}:{self.context.span(source).line}: {NOTE}")
        whole, added = self.context.observed(out), self.context.observed(source)
        if whole is None or added is None or len(whole.dtypes) != 1 or whole.dtypes != added.dtypes:
            return self.context.build("{out} + ({value}).astype({out}.dtype)", out=out, value=value)
        return self.context.build("{out} + {value}", out=out, value=value)

    def _weights(self, routes: Routes, weights: Weights, value: cst.BaseExpression) -> cst.BaseExpression:
        """The weight of each row: the sum over the slots in which the mask selects it."""
        mask: cst.BaseExpression = cst.Name(routes.masks[weights.mask] or self._name())
        if weights.turned:
            mask = cst.Attribute(mask, cst.Name("T"))
        axis, new_axes = "-1" if weights.axis else "0", weights.new_axes
        keeps_axis = weights.axis and new_axes == 1
        text = f"jnp.sum(jnp.where({{mask}}, {{w}}, 0), axis={axis}{', keepdims=True' if keeps_axis else ''})"
        if new_axes and not keeps_axis:
            text = f"jnp.expand_dims({text}, {tuple(range(1, new_axes + 1)) if new_axes > 1 else -1})"
        return self.context.build(text, mask=mask, w=value)

    def _mask_span(self, call: cst.BaseExpression, routes: Routes) -> object:
        assert isinstance(call, cst.Call)
        whole = call.args[0].value if call.args and not call.args[0].keyword else call.func.value  # type: ignore[attr-defined]
        return self.context.span(whole)

    def _named(self, routes: Routes) -> set[object]:
        return {span for span, name in routes.masks.items() if name}

    def _name(self) -> str:
        """A name for a mask that has none."""
        name = "selected"
        while name in self.context.taken:
            name += "_"
        return name
