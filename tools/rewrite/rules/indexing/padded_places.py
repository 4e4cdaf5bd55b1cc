"""Places that values select: as many as there may be, of which writes leave out those behind the last one."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.routing.padded_places import padded_places
from migrate_agent.tools.rewrite.analysis.routing.place_values import Padded
from migrate_agent.tools.rewrite.analysis.routing.row_functions import FileFacts
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.indexing.filled_rows import filled_here
from migrate_agent.tools.rewrite.rules.indexing.masked_rows import selected_here
from migrate_agent.tools.rewrite.rules.indexing.padded_rows import padded_here
from migrate_agent.tools.rewrite.rules.indexing.routed_rows import routes_here
from migrate_agent.tools.rewrite.rules.mutation.writes import places_written
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import Refuse

FORMS = {
    "list": "vendored.padded_nonzero({mask})[{axis}]",
    "squeezed list": "vendored.padded_nonzero({mask})[{axis}]",
    "columns": "jnp.stack(vendored.padded_nonzero({mask}))",
    "table": "jnp.stack(vendored.padded_nonzero({mask}), axis=1)",
    "tables": "vendored.padded_nonzero({mask})",
}


class PadPlaces(Rule):
    """Compute all places that values may select: `places = mask.nonzero().squeeze()` → `places = padded_nonzero(mask)[0]`, where what is computed of
    each place alone is written by these indices.

    Behind the last place the indices lie beyond the end: reads give a copy of the first row that is selected, and writes leave them out. Declines
    where the number of places is seen otherwise, or a value may depend on those of other places.
    """

    KEEP = (
        "import numpy as np\n\ndef f(x, mask):\n    rows = np.nonzero(mask)\n    return x[rows]\n",
        "def f(x, table):\n    for row in table:\n        if len(row) == 0:\n            continue\n        x[row[0]] = 1\n    return x\n",
    )
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, target: torch.Tensor, tables):\n    out = torch.zeros_like(x)\n"
            "    for low, table in enumerate(tables):\n        places = (target == low).nonzero().squeeze()\n        if places.numel() == 0:\n"
            "            continue\n        rows = torch.tanh(x.index_select(0, places) * 2.0)\n        out.index_copy_(0, places, -rows)\n"
            "    return out\n",
            "def f(x: jax.Array, target: jax.Array, tables):\n    out = jnp.zeros_like(x)\n    for low, table in enumerate(tables):\n"
            "        places = padded_nonzero(target == low)[0]\n        rows = jnp.tanh(take_places(x, places) * 2.0)\n"
            "        out = index_copy(out, 0, places, -rows)\n    return out\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, mask: torch.Tensor):\n    out, offset = torch.zeros_like(x), 0\n"
            "    places = mask.nonzero()[:, 0]\n    rows = x[places, :].exp()\n    out[offset : offset + rows.size(0)] = rows\n"
            "    offset += len(rows)\n    return out\n",
            "def f(x: jax.Array, mask: jax.Array):\n    out, offset = jnp.zeros_like(x), 0\n    places = padded_nonzero(mask)[0]\n"
            "    rows = jnp.exp(take_places(x, places))\n    out = out.at[next_places(places, offset)].set(rows)\n"
            "    offset += count_places(places)\n    return out\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, mask: torch.Tensor, low: int, train: bool):\n    places = mask.nonzero()[:, 0]\n"
            "    if not train or 0 < low < 5:\n        x = x * 2\n    out = torch.zeros_like(x)\n    out[places] = x[places].exp()\n    return out\n",
            "def f(x: jax.Array, mask: jax.Array, low: int, train: bool):\n    places = padded_nonzero(mask)[0]\n"
            "    if not train or 0 < low < 5:\n        x = x * 2\n    out = jnp.zeros_like(x)\n"
            "    out = out.at[places].set(jnp.exp(take_places(x, places)))\n    return out\n",
        ),
        (
            "import torch\n\ndef f(h: torch.Tensor, adj: torch.Tensor, n: int):\n    edge = adj.nonzero().t()\n"
            "    pairs = torch.cat((h[edge[0, :], :], h[edge[1, :], :]), dim=1)\n    weights = torch.exp(pairs.sum(dim=1))\n"
            "    return torch.sparse_coo_tensor(edge, weights, (n, n)) @ h\n",
            "def f(h: jax.Array, adj: jax.Array, n: int):\n    edge = jnp.stack(padded_nonzero(adj))\n"
            "    pairs = jnp.concatenate((take_places(h, edge[0, :]), take_places(h, edge[1, :])), axis=1)\n"
            "    weights = jnp.exp(jnp.sum(pairs, axis=1))\n    return dense(edge, weights, (n, n)) @ h\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        padded, span = places_here(self.context), self.context.span(original)
        if span in padded.steps and isinstance(updated.func, cst.Attribute):
            return updated.func.value
        if span in padded.selections:
            return self._selection(original, updated, padded)
        if span in padded.counts:
            return self.context.build(f"vendored.count_places({padded.counts[span]})")
        if _copied_to(original) is not None and self.context.span(_copied_to(original)) in padded.writes:  # type: ignore[arg-type]
            return updated  # `leave_Expr` has the whole statement
        if span in padded.reads:
            operands = _operands(original, updated, self.context)
            return self.context.build("vendored.take_places({x}, {places})", x=operands[0], places=operands[2])
        if span in padded.gathers:
            operands = _operands(original, updated, self.context)
            text = 'jnp.take_along_axis({x}, {index}, axis={axis}, mode="clip")'
            return self.context.build(text, x=operands[0], axis=operands[1], index=operands[2])
        return None

    def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        """An index behind the last place may be none of an embedding, whose rows would be NaN there, and so would gradients."""
        embedding = places_here(self.context).lookups.get(self.context.span(original.value))
        if embedding is None:
            return None
        index = self.context.build(f"jnp.clip({{x}}, 0, {embedding}.num_embeddings - 1)", x=updated.value)
        return updated.with_changes(value=index)

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        padded, span = places_here(self.context), self.context.span(original)
        if span in padded.steps:
            return updated.value
        if span in padded.counts:
            return self.context.build(f"vendored.count_places({padded.counts[span]})")
        if span in padded.writes:
            write = padded.writes[span]
            index = self.context.build(f"vendored.next_places({write.indices}, {write.offset})")
            return updated.with_changes(slice=[cst.SubscriptElement(cst.Index(index))])
        first = updated.slice[0].slice
        if span not in padded.reads or not isinstance(first, cst.Index):
            return None
        return self.context.build("vendored.take_places({x}, {places})", x=updated.value, places=first.value)

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.BaseSmallStatement | None:
        """`out[offset : offset + n].copy_(rows)` → `out = out.at[next_places(places, offset)].set(rows.astype(out.dtype))`"""
        target = _copied_to(original.value)
        if target is None or self.context.span(target) not in places_here(self.context).writes:
            return None
        call = cst.ensure_type(updated.value, cst.Call)
        new = cst.ensure_type(cst.ensure_type(call.func, cst.Attribute).value, cst.Subscript)
        value = self.context.build("{v}.astype({x}.dtype)", v=call.args[0].value, x=new.value)
        try:
            return places_written(self.context, target, new, value)
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        if self.context.span(original) not in places_here(self.context).guards or not isinstance(updated.body, cst.IndentedBlock):
            return None
        self.context.drop_holes(original.test)
        body = [statement for statement in updated.body.body if isinstance(statement, cst.BaseStatement)]
        if all(isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Continue) for line in body):
            return cst.RemoveFromParent()
        first = body[0].with_changes(leading_lines=[*updated.leading_lines, *body[0].leading_lines])  # type: ignore[attr-defined]
        return cst.FlattenSentinel([first, *body[1:]])

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> None:
        """What no example ran, and what may see how many places there are, stays open."""
        if self.context.span(original).line in places_here(self.context).unknown:
            self.context.hole(original, "it may depend on how many places values select", "dynamic-shape")

    def _selection(self, original: cst.Call, updated: cst.Call, padded: Padded) -> cst.BaseExpression:
        form = padded.selections[self.context.span(original)]
        positional = [argument.value for argument in updated.args if not argument.keyword]
        mask = positional[0] if positional else updated.func.value  # type: ignore[attr-defined]
        self.context.notes.append(
            f"{self.context.file.file.path}:{self.context.span(original).line}: values of all places that may be selected are computed, and those of "
            "places that are not are left out where results are written"
        )
        return self.context.build(FORMS[form.kind].replace("{axis}", str(form.axis)), mask=mask.with_changes(lpar=[], rpar=[]))


def places_here(context: Context) -> Padded:
    """`padded_places` of the function that is being rewritten, found out once; without the selections that other rules know how to do without."""
    function = context.function
    if function is None or context.constructing:
        return Padded()
    cache: dict[int, Padded] = context.file.__dict__.setdefault("_padded_places", {})
    if id(function) not in cache:
        source = FileFacts(context.file, context.facts)
        others = {
            *filled_here(context).selections,
            *selected_here(context)[0],
            *routes_here(context).selections,
            *padded_here(context).indices,
        }
        cache[id(function)] = padded_places(context.repo, source, function, context.cls, frozenset(others), context.observed_lines)
    return cache[id(function)]


def _copied_to(node: cst.BaseExpression) -> cst.Subscript | None:
    """`out[a:b]` of `out[a:b].copy_(rows)`."""
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Subscript() as target, attr=cst.Name(value="copy_")), args=[_]):
            return target
    return None


def _operands(original: cst.Call, updated: cst.Call, context: Context) -> list[cst.BaseExpression]:
    """The arguments of a function of torch, or the array and the arguments of its method."""
    values = [argument.value for argument in updated.args]
    method = isinstance(original.func, cst.Attribute) and not context.dotted(original.func).startswith("torch")
    return [updated.func.value, *values] if method and isinstance(updated.func, cst.Attribute) else values
