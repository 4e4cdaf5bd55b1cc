"""`module._modules`, the registry in which torch keeps what is inside a module."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class ReplaceModuleRegistries(Rule):
    """Read parts through a function: `self._modules` → `dict(named_children(self))`.

    Declines (a hole) where the registry is changed.
    """

    KEEP = ("class Plain:\n    def f(self):\n        return self._modules\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Sequential):\n    def forward(self, x):\n        for part in self._modules.values():\n"
            "            x = part(x)\n        return x\n",
            "class M(Sequential):\n    def __call__(self, x):\n        for part in dict(named_children(self)).values():\n"
            "            x = part(x)\n        return x\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        if original.attr.value != "_modules" or not self._is_module(original.value):
            return None
        # `named_children` gives a new dictionary: a change to that would reach nothing.
        if self._is_changed(original):
            self.context.hole(original, "the registry of a module's parts is changed: NNX keeps parts as attributes", "module-method")
            return None
        return self.context.build("dict(vendored.named_children({module}))", module=updated.value)

    def _is_module(self, node: cst.BaseExpression) -> bool:
        context = self.context
        if context.is_self(node):
            return bool(context.cls and context.repo.is_module_class(context.cls))
        fact = context.observed(node)
        return bool(fact and fact.kinds) and all(kind.startswith("module:") for kind in fact.kinds)  # type: ignore[union-attr]

    def _is_changed(self, node: cst.Attribute) -> bool:
        """Whether the registry itself is assigned to, an entry is set or deleted, or a method changes it."""
        parent, grand = self.context.parent(), self.context.parent(2)
        if isinstance(parent, (cst.AssignTarget, cst.Del)):
            return True
        if isinstance(parent, cst.Subscript):
            return isinstance(grand, (cst.AssignTarget, cst.AugAssign, cst.Del))
        return isinstance(parent, cst.Attribute) and parent.attr.value in ("pop", "popitem", "update", "clear", "setdefault")
