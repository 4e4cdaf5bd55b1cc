"""Python control flow on tensor values, which cannot be traced: found, and left as holes."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rule
from migrate_agent.tools.rewrite.facts import is_tensor

CONCRETE = frozenset({"int", "float", "bool", "range"})


class FindTensorBranches(Rule):
    """`if x.sum() > 0:` on a tensor is a hole of class `tensor-branch`; `assert` on tensor values is dropped with a note."""

    ORDER = 70
    CHECKS = ("leave_Call",)
    KEEP = ("def f(x: int):\n    if x > 0:\n        return 1\n    return 2\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    assert (x > 0).all()\n    return x\n",
            "def f(x: jax.Array):\n    return x\n",
        ),
    )

    def leave_If(self, original: cst.If, updated: cst.If) -> None:
        self._branch(original.test)

    def leave_While(self, original: cst.While, updated: cst.While) -> None:
        self._branch(original.test)

    def leave_IfExp(self, original: cst.IfExp, updated: cst.IfExp) -> None:
        self._branch(original.test)

    def leave_Assert(self, original: cst.Assert, updated: cst.Assert) -> cst.RemovalSentinel | None:
        if self._tensor(original.test):
            self.context.notes.append(f"{self.context.file.file.path}:{self.context.span(original).line}: an assertion on tensor values was dropped")
            return cst.RemoveFromParent()
        return None

    def leave_Call(self, original: cst.Call, updated: cst.BaseExpression) -> None:
        func = original.func
        if isinstance(func, cst.Name) and func.value in CONCRETE and any(is_tensor(self.context.observed(a.value)) for a in original.args):
            if not self._constructing():
                self.context.hole(original, f"{func.value}() of a tensor needs its value while tracing", "tensor-branch")

    def _constructing(self) -> bool:
        context = self.context
        return (context.file.file.path, ".".join(context.path)) in context.randomness.constructing

    def _branch(self, test: cst.BaseExpression) -> None:
        if self._tensor(test) and not self._constructing():
            self.context.hole(test, "a branch on tensor values", "tensor-branch")

    def _tensor(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.BooleanOperation):
            return self._tensor(node.left) or self._tensor(node.right)
        if isinstance(node, cst.UnaryOperation):
            return self._tensor(node.expression)
        fact = self.context.observed(node)
        return bool(fact) and "tensor" in fact.kinds and set(fact.kinds) <= {"tensor", "parameter"}  # type: ignore[union-attr]
