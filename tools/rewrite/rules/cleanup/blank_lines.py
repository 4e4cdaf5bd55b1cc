"""Keeps the layout of blocks tidy where statements went."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class TidyBlocks(Rule):
    """Remove blank lines that a removed statement leaves: a block does not begin with an empty line.

    Declines where no statement was removed.
    """

    KEEP = ("def f():\n    x = 1\n\n    return x\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n\n        self.d = d\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.d = d\n",
        ),
    )

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock | None:
        if len(original.body) == len(updated.body) or not updated.body:
            return None
        first = updated.body[0]
        lines = list(getattr(first, "leading_lines", ()))
        while lines and lines[0].comment is None:
            del lines[0]
        return updated.with_changes(body=[first.with_changes(leading_lines=lines), *updated.body[1:]])
