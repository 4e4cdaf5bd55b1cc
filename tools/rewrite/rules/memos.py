"""What a call keeps for the next one only to save work is worked out in each call."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rule
from migrate_agent.tools.rewrite.memo import Memo, memos


class ForgetMemos(Rule):
    """`if self.mask is None or …: self.mask = …` → `mask = …`, where it depends on sizes alone. The compiler folds it; a note says so."""

    ORDER = 1
    KEEP = (
        "class Plain:\n    def __init__(self):\n        self.mask = None\n\n    def f(self, n):\n        if self.mask is None:\n"
        "            self.mask = n\n        return self.mask\n",
    )
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mask = None\n"
            "        self.scale = 2\n\n    def forward(self, x: torch.Tensor):\n        if self.mask is None or self.mask.size(0) != len(x):\n"
            "            self.mask = torch.ones(len(x)) * self.scale\n        return x * self.mask\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.scale = 2\n\n    def __call__(self, x: jax.Array):\n"
            "        mask = jnp.ones(len(x)) * self.scale\n        return x * mask\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mask = None\n\n"
            "    def forward(self, x: torch.Tensor, causal: bool):\n        if causal:\n"
            "            if self.mask is None or self.mask.size(0) != len(x):\n                self.mask = torch.ones(len(x))\n"
            "        else:\n            self.mask = None\n        return x if self.mask is None else x * self.mask\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def __call__(self, x: jax.Array, causal: bool):\n"
            "        if causal:\n            mask = jnp.ones(len(x))\n        else:\n            mask = None\n"
            "        return x if mask is None else x * mask\n",
        ),
    )

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel | None:
        memo = next((m for m in self._memos().values() if m.test == self.context.span(original)), None)
        if memo is None:
            return None
        self.context.notes.append(
            f"{self.context.file.file.path}:{memo.store.line}: self.{memo.attribute} was kept between calls to save work; the rewrite "
            "works it out in each call"
        )
        if memo.early:
            return cst.RemoveFromParent()
        self.context.forget(original.test)
        assert isinstance(updated.body, cst.IndentedBlock)
        body = list(updated.body.body)
        if body and isinstance(body[0], (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            body[0] = body[0].with_changes(leading_lines=[*updated.leading_lines, *body[0].leading_lines])
        return cst.FlattenSentinel(body)

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel | None:
        if len(original.body) != 1:
            return None
        span = self.context.span(original.body[0])
        memo = next((m for m in self._memos().values() if span in (m.start, m.store, *m.clears)), None)
        if memo is None:
            return None
        if span in memo.clears:
            return updated.with_changes(body=[cst.Assign([cst.AssignTarget(cst.Name(memo.local))], cst.Name("None"))])
        if span == memo.start or memo.plain:
            return cst.RemoveFromParent()
        value = _value(updated.body[0]) if updated.body else None
        return None if value is None else updated.with_changes(body=[cst.Assign([cst.AssignTarget(cst.Name(memo.local))], value)])

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        if not context.is_self(original.value) or isinstance(context.parent(), cst.AssignTarget):
            return None
        memo = self._memos().get(original.attr.value)
        return cst.Name(memo.local) if memo and context.path[-1] == memo.method else None

    def _memos(self) -> dict[str, Memo]:
        context = self.context
        if context.cls is None:
            return {}
        key = context.cls.id
        if key not in context.memos:
            context.memos[key] = memos(context.repo, context.cls, context.facts)
        return context.memos[key]


def _value(statement: cst.BaseSmallStatement) -> cst.BaseExpression | None:
    """What a statement keeps: the assigned value, without the variable that a buffer would be."""
    if not isinstance(statement, cst.Assign):
        return None
    value = statement.value
    wrapped = isinstance(value, cst.Call) and cst.Module([]).code_for_node(value.func) in ("nnx.Cache", "nnx.Variable")
    return value.args[0].value if wrapped and isinstance(value, cst.Call) else value
