"""Factors that float16 cannot hold: torch multiplies by a number of Python in float32 and rounds once."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule

LARGEST = 65504.0
"""The largest number of float16."""
FLOATS = ("float", "bfloat")


class ScaleByLargeNumbers(Rule):
    """Multiply by a number that float16 cannot hold as torch does: `scores - 1e10 * (1 - mask)` → `scores - scaled(1 - mask, 1e10)`.

    JAX rounds the number to the array's dtype first. It is infinite in float16, and NaN beside a zero of the mask. Declines where the other side was
    seen to be no tensor of floats, and while a module is constructed.
    """

    KEEP = ("def f(x: float):\n    return 1e10 * x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, mask: torch.Tensor):\n    return x * mask - 1e10 * (1 - mask) + mask * -1e30, x * 10000.0\n",
            "def f(x: jax.Array, mask: jax.Array):\n    return x * mask - scaled(1 - mask, 1e10) + scaled(mask, -1e30), x * 10000.0\n",
        ),
    )

    def leave_BinaryOperation(self, original: cst.BinaryOperation, updated: cst.BinaryOperation) -> cst.BaseExpression | None:
        if not isinstance(original.operator, cst.Multiply) or self.context.constructing:
            return None
        if _is_large(original.right) and self._is_of_floats(original.left):
            x, factor = updated.left, updated.right
        elif _is_large(original.left) and self._is_of_floats(original.right):
            x, factor = updated.right, updated.left
        else:
            return None
        return self.context.build("vendored.scaled({x}, {factor})", x=x.with_changes(lpar=[], rpar=[]), factor=factor)

    def _is_of_floats(self, node: cst.BaseExpression) -> bool:
        fact = self.context.observed(node)
        if fact is None or not is_tensor(fact):
            return False
        return not fact.dtypes or any(dtype.startswith(FLOATS) for dtype in fact.dtypes)


def _is_large(node: cst.BaseExpression) -> bool:
    """Whether an expression is a literal that float16 cannot hold."""
    match node:
        case cst.UnaryOperation(operator=cst.Minus(), expression=inside):
            return _is_large(inside)
        case cst.Float():
            return abs(float(node.evaluated_value)) > LARGEST
    return False
