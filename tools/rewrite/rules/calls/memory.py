"""Comparisons of the memory of tensors, which ask whether a call was handed the same tensor twice."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule


class CompareMemory(Rule):
    """Compare arrays in place of their memory: `q.data_ptr() == k.data_ptr()` → `q is k`, also in a chain.

    An array that JAX makes has memory of its own, so two are the same where they are one object. What `jax.jit` is handed twice is two arrays
    in the function. Declines where an address is anything but compared with others, and for parameters.
    """

    KEEP = ("def f(x, y):\n    return x.address() == y.address()\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):\n"
            "    return q.data_ptr() == k.data_ptr() == v.data_ptr(), k.data_ptr() != v.data_ptr()\n",
            "def f(q: jax.Array, k: jax.Array, v: jax.Array):\n    return q is k is v, k is not v\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        parent = self.context.parent(2) if isinstance(self.context.parent(), cst.ComparisonTarget) else self.context.parent()
        return updated.func.value if self._compares(parent) and isinstance(updated.func, cst.Attribute) else None

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.BaseExpression | None:
        if not self._compares(original):
            return None
        space = cst.SimpleWhitespace(" ")
        targets = [
            one.with_changes(operator=cst.Is() if isinstance(one.operator, cst.Equal) else cst.IsNot(whitespace_between=space))
            for one in updated.comparisons
        ]
        where = f"{self.context.file.file.path}:{self.context.span(original).line}"
        self.context.notes.append(
            f"{where}: tensors are the same where they are one array; what `jax.jit` is handed twice is two arrays in it"
        )
        return updated.with_changes(comparisons=targets)

    def _compares(self, node: cst.CSTNode | None) -> bool:
        """Whether an original node only asks whether addresses are equal."""
        if not isinstance(node, cst.Comparison) or not all(isinstance(one.operator, cst.Equal | cst.NotEqual) for one in node.comparisons):
            return False
        return all(map(self._is_address, [node.left, *(one.comparator for one in node.comparisons)]))

    def _is_address(self, node: cst.BaseExpression) -> bool:
        match node:
            case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name("data_ptr")), args=[]):
                return is_tensor(self.context.observed(tensor)) and not self.context.is_parameter_name(tensor)
        return False
