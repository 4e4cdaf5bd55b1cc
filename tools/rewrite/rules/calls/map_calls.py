"""Constructors and drawing functions that `map` calls get their `nnx.Rngs` beforehand."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.randomness import constructs_module, functions_named
from migrate_agent.tools.rewrite.rules.apply_tables import keyword
from migrate_agent.tools.rewrite.rules.rule import Rule


class MapWithRngs(Rule):
    """Give what `map` constructs its `rngs`: `map(Block, sizes)` → `map(partial(Block, rngs=rngs), sizes)`.

    `Block` is a module class or a function that draws. Declines (a hole) where no `rngs` is in scope.
    """

    KEEP = ("def f(g, xs):\n    return map(g, xs)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass B(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.l = nn.Linear(d, d)\n\n"
            "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.parts = nn.ModuleList(map(B, (2, 3)))\n",
            "class B(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.l = Linear(d, d, rngs=rngs)\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.parts = nnx.List(map(partial(B, rngs=rngs), (2, 3)))\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        context = self.context
        if not (isinstance(original.func, cst.Name) and original.func.value == "map" and len(original.args) > 1) or "map" in context.taken:
            return None
        first = original.args[0].value
        fact = context.observed(first)
        functions = functions_named(context.repo, context.dotted(first), fact)
        draws = bool(functions) and functions <= context.randomness.parameter
        if not draws and not constructs_module(context.repo, context.dotted(first), fact):
            return None
        rngs = context.rngs()
        if rngs is None:
            context.hole(original, "map calls what needs an nnx.Rngs where none is at hand", "randomness")
            return None
        bound = cst.Call(context.use(cst.Name("partial")), [cst.Arg(updated.args[0].value), keyword("rngs", rngs)])
        return updated.with_changes(args=[updated.args[0].with_changes(value=bound), *updated.args[1:]])
