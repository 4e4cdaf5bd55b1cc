"""Assignments that say nothing once devices are gone."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class DropSelfAssignments(Rule):
    """Remove assignments of a name to itself: `x = x.to(device)` → `x = x` → nothing.

    Declines where the source itself says so, and for a line with comments above it.
    """

    KEEP = ("def f(x):\n    x = x\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    x = x.to(y.device)\n    return x + y\n",
            "def f(x: jax.Array, y: jax.Array):\n    return x + y\n",
        ),
    )

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        # The comments above the line would be lost with it.
        if _to_itself(original) or not _to_itself(updated) or any(line.comment for line in updated.leading_lines):
            return None
        return cst.RemoveFromParent()


def _to_itself(line: cst.SimpleStatementLine) -> bool:
    match line.body:
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name(target))], value=cst.Name(value))]:
            return target == value
    return False
