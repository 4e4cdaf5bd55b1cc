"""Modules whose children are gone through: the order in which they were set must outlive NNX's splitting and merging."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class KeepChildrenInOrder(Rule):
    """Keep the order of children that are gone through: `class M(nn.Module)` → `class M(OrderedChildren)`.

    NNX sorts attributes by name wherever a module is split and merged. Declines for classes whose children
    nothing goes through, and for containers, which keep an order of their own.
    """

    KEEP = ("class Plain:\n    def f(self):\n        return list(self.children())\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.fc = nn.Linear(d, d)\n        self.act = nn.ReLU()\n\n    def forward(self, x):\n"
            "        for child in self.children():\n            x = child(x)\n        return x\n",
            "class M(OrderedChildren):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.fc = Linear(d, d, rngs=rngs)\n"
            "        self.act = ReLU()\n\n    def __call__(self, x):\n        for child in children(self):\n"
            "            x = child(x)\n        return x\n",
        ),
    )

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef | None:
        model = self.context.cls
        if model is None or model.id not in self.context.randomness.walked:
            return None
        # `OrderedChildren` derives from `nnx.Module`; a base class of the repository has it already.
        module = cst.parse_expression("nnx.Module")
        if not any(base.value.deep_equals(module) for base in updated.bases):
            return None
        helper = self.context.helper("OrderedChildren")
        return updated.with_changes(
            bases=[base.with_changes(value=helper) if base.value.deep_equals(module) else base for base in updated.bases]
        )
