"""Assignments that say nothing once devices are gone."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class DropSelfAssignments(Rule):
    """Remove assignments of a name to itself: `x = x.to(device)` → `x = x` → nothing.

    Comments above the line go to the next one. Declines where the source itself says so, and for a line with comments that is the last of its block.
    """

    KEEP = ("def f(x):\n    x = x\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    x = x.to(y.device)\n    return x + y\n",
            "def f(x: jax.Array, y: jax.Array):\n    return x + y\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, n):\n    y = x + 1\n\n    # in order\n    y = y.contiguous()\n    # two axes\n    y = y.view(n, -1)\n"
            "    if n > 1:\n        # here too\n        y = y.contiguous()\n    return y\n",
            "def f(x: jax.Array, n):\n    y = x + 1\n\n    # in order\n    # two axes\n    y = y.reshape(n, -1)\n"
            "    if n > 1:\n        # here too\n        y = y\n    return y\n",
        ),
    )

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        # The comments above the line would be lost with it: they are seen to where the whole block is.
        if _to_itself(original) or not _to_itself(updated) or any(line.comment for line in updated.leading_lines):
            return None
        return cst.RemoveFromParent()

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock | None:
        source = {_to_itself(line) for line in original.body}
        body: list[cst.BaseStatement] = []
        comments: list[cst.EmptyLine] = []
        for number, line in enumerate(updated.body, 1):
            name = _to_itself(line)
            if name and name not in source and number < len(updated.body) and isinstance(line, cst.SimpleStatementLine):
                comments += line.leading_lines
            elif comments:
                body.append(line.with_changes(leading_lines=[*comments, *getattr(line, "leading_lines", ())]))
                comments = []
            else:
                body.append(line)
        return None if len(body) == len(updated.body) else updated.with_changes(body=body)


def _to_itself(line: cst.CSTNode) -> str:
    """The name that a line assigns to itself; "" for any other line."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(target))], value=cst.Name(value))]):
            return target if target == value else ""
    return ""
