"""Attributes that hold a module or an array only later: NNX decides at the first assignment whether an attribute is data."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.rules.rule import Rule


class MarkLateAttributes(Rule):
    """Mark attributes that hold modules or arrays only later: `self.down = None` → `self.down = nnx.data(None)`.

    `self.norm = deep`, then `self.norm = nn.LayerNorm(d)` → `self.norm = nnx.data(LayerNorm(d, rngs=rngs))`:
    NNX decides at the first assignment whether an attribute is data. Declines where nothing else is assigned.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.down = None\n        self.down = x\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, deep):\n        super().__init__()\n        self.down = None\n"
            "        self.size = None\n        if deep:\n            self.down = nn.Linear(d, d)\n            self.size = 3\n",
            "class M(nnx.Module):\n    def __init__(self, d, deep, *, rngs: nnx.Rngs):\n        self.down = nnx.data(None)\n"
            "        self.size = None\n        if deep:\n            self.down = Linear(d, d, rngs=rngs)\n            self.size = 3\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, deep: bool):\n        super().__init__()\n"
            "        self.down = deep\n        if self.down:\n            self.down = nn.Linear(d, d)\n",
            "class M(nnx.Module):\n    def __init__(self, d, deep: bool, *, rngs: nnx.Rngs):\n        self.down = deep\n"
            "        if self.down:\n            self.down = nnx.data(Linear(d, d, rngs=rngs))\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        context = self.context
        target = original.targets[0].target
        if isinstance(target, cst.Attribute) and len(original.targets) == 1 and self._held_plain_value(original, target):
            return updated.with_changes(value=context.build("nnx.data({value})", value=updated.value))
        if not (isinstance(original.value, cst.Name) and original.value.value == "None" and isinstance(target, cst.Attribute)):
            return None
        if not isinstance(updated.value, cst.Name):
            return None  # an earlier rule knows what it holds
        if (
            not context.is_self(target.value)
            or not context.cls
            or not context.repo.is_module_class(context.cls)
            or len(original.targets) > 1
        ):
            return None
        if not self._holds_data(target.attr.value) or context.repo.buffer(context.cls, target.attr.value) is not None:
            return None
        return updated.with_changes(value=context.build("nnx.data(None)"))

    def _held_plain_value(self, assign: cst.Assign, target: cst.Attribute) -> bool:
        """Whether the constructor gives a module to an attribute that it gave a number, text or truth value before."""
        context, fact = self.context, self.context.observed(assign.value)
        method = context.cls.methods.get("__init__") if context.cls and context.repo.is_module_class(context.cls) else None
        if method is None or context.cls is None or not context.is_self(target.value) or fact is None:
            return False
        if not any(kind.startswith("module:") for kind in fact.kinds):
            return False
        before = [
            context.facts.observed.get(span_of(node.value, context.file.lines))
            for node in ast.walk(method)
            if isinstance(node, ast.Assign) and node.lineno < context.span(assign).line and len(node.targets) == 1
            if context.cls.own.get(id(node.targets[0])) == target.attr.value
        ]
        return any(one is not None and set(one.kinds) <= {"int", "float", "bool", "str"} for one in before)

    def _holds_data(self, name: str) -> bool:
        context = self.context
        assert context.cls
        for model in context.repo.ancestors(context.cls):
            for node in ast.walk(model.node):
                if (
                    isinstance(node, ast.Assign)
                    and any(model.own.get(id(target)) == name for target in node.targets)
                    and not isinstance(node.value, ast.Constant)
                ):
                    fact = context.facts.observed.get(span_of(node.value, model.file.lines)) if model.file is context.file else None
                    if fact is None or any(k in ("tensor", "parameter") or k.startswith("module:") for k in fact.kinds):
                        return True
        return False
