"""`[rewrite] scan_layers = true`: equal layers that are called one after the other, as one scan over stacked parameters."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class StackLayers(Rule):
    """Where it is asked for, stack equal layers: `nn.ModuleList([Block(d) for _ in range(n)])` → `LayerStack(lambda rngs: Block(d, rngs=rngs), n, rngs=rngs)`,
    and `for block in self.blocks: x = block(x)` → `x = self.blocks(x)`.

    Declines for layers that depend on their number, lists that are used in any other way, and layers that were seen to change the shape or dtype
    of what they are given (`analysis/plain_layers/stacks.py`).
    """

    KEEP = ("def f(xs: list):\n    for x in xs:\n        y = x(1)\n    return y\n",)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        if (context.file.file.path, context.span(original)) not in context.repo.stacks.lists:
            return None
        layers = updated.args[0].value
        if not isinstance(layers, cst.ListComp) or not isinstance(layers.for_in.iter, cst.Call):
            return None
        count = layers.for_in.iter.args[0].value
        rngs = context.rngs() or context.build("nnx.Rngs(0)")
        return context.build("vendored.LayerStack(lambda rngs: {layer}, {count}, rngs={rngs})", layer=layers.elt, count=count, rngs=rngs)

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.BaseStatement | None:
        context = self.context
        if (context.file.file.path, context.span(original.iter)) not in context.repo.stacks.loops:
            return None
        match updated.body:
            case cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[cst.Assign(value=cst.Call() as call) as assignment]) as line]):
                value = call.with_changes(func=updated.iter)
                return line.with_changes(body=[assignment.with_changes(value=value)], leading_lines=updated.leading_lines)
        return None
