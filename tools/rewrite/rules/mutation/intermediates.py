"""What a call leaves on the module for people to look at is an `nnx.Intermediate`."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.parameters.variables import subscript
from migrate_agent.tools.rewrite.rules.rule import Rule


class StoreIntermediates(Rule):
    """Store what a call leaves to look at: `self.attention = weights` in `forward` → `self.attention = nnx.Intermediate(weights)`.

    It is then no part of the module's state: `nnx.pop(module, nnx.Intermediate)` takes it off again. Declines
    where something computes with it.
    """

    KEEP = ("class Plain:\n    def f(self, x):\n        self.seen = x\n        return x\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.seen = None\n\n"
            "    def forward(self, x: torch.Tensor):\n        self.seen = x * 2\n        return x\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n"
            "    def __call__(self, x: jax.Array):\n        self.seen = nnx.Intermediate(x * 2)\n        return x\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.seen: torch.Tensor = torch.zeros(1)\n\n"
            "    def forward(self, x: torch.Tensor):\n        self.seen = x * 2\n        return x\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n"
            "    def __call__(self, x: jax.Array):\n        self.seen = nnx.Intermediate(x * 2)\n        return x\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        context, target = self.context, original.targets[0].target
        if len(original.targets) != 1 or not isinstance(target, cst.Attribute) or not context.is_self(target.value):
            return None
        if context.path[-1:] == ["__init__"] or not self._is_intermediate(target.attr.value):
            return None
        return updated.with_changes(value=context.build("nnx.Intermediate({value})", value=updated.value))

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        """The attribute is not there before the first call, as after `nnx.pop`."""
        match original.body:
            case [
                cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=owner, attr=cst.Name(value=name)))])
                | cst.AnnAssign(target=cst.Attribute(value=owner, attr=cst.Name(value=name)))
            ]:
                first = self.context.path[-1:] == ["__init__"] and self.context.is_self(owner)
                return cst.RemoveFromParent() if first and self._is_intermediate(name) else None
        return None

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        if isinstance(self.context.parent(), cst.AssignTarget) or not self.context.is_self(original.value):
            return None
        return subscript(updated) if self._is_intermediate(original.attr.value) else None

    def _is_intermediate(self, name: str) -> bool:
        return name in self.context.class_facts.intermediates
