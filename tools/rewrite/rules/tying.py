"""Shared parameters: layers that use one weight keep using one variable."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rule
from migrate_agent.tools.rewrite.tables import layers
from migrate_agent.tools.rewrite.template import fill
from migrate_agent.tools.rewrite.vendoring import properties
from migrate_agent.tools.types import Observed


class ShareVariables(Rule):
    """`self.head.weight = self.tok.weight` → `self.head.weight = self.tok.embedding`: the variable itself is shared, whatever its layout.

    Declines (a hole) where the target cannot hold a variable of the other layout.
    """

    ORDER = 8
    KEEP = ("class Plain:\n    def f(self, a, b):\n        a.weight = b.weight\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, v, d):\n        super().__init__()\n        self.tok = nn.Embedding(v, d)\n"
            "        self.head = nn.Linear(d, v)\n        self.head.weight = self.tok.weight\n",
            "class M(nnx.Module):\n    def __init__(self, v, d, *, rngs: nnx.Rngs):\n        self.tok = Embedding(v, d, rngs=rngs)\n"
            "        self.head = Linear(d, v, rngs=rngs)\n        self.head.weight = self.tok.embedding\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        source, target = original.value, original.targets[0].target
        if not isinstance(source, cst.Attribute) or not isinstance(target, cst.Attribute):
            return None
        fact = self.context.observed(source)
        kinds = _layers(self.context.observed(source.value))
        if fact is None or fact.kinds != ("parameter",) or not kinds:
            return None
        name = source.attr.value
        templates = {layers()[kind].params.get(name, "") for kind in kinds}
        if len(templates) != 1 or not (template := templates.pop()):
            return None
        owner = _layers(self.context.observed(target.value))
        moved = any(name in properties(layers()[kind].vendored) for kind in kinds)
        if moved and not (owner and all(target.attr.value in properties(layers()[kind].vendored) for kind in owner)):
            self.context.hole(original, "a weight of another layout is shared with something that is no layer", "tied-weight")
            return None
        if not isinstance(updated.value, cst.Attribute):
            return None
        return updated.with_changes(value=fill(template, {"self": updated.value.value}))


def _layers(fact: Observed | None) -> list[str]:
    """The torch layers that an expression is, where it is nothing else."""
    names = [kind.removeprefix("module:") for kind in fact.kinds] if fact else []
    return names if names and all(name in layers() for name in names) else []
