"""Keeps blocks tidy where statements went: no blank line first, and no `return` last."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class TidyBlocks(Rule):
    """Remove what a removed statement leaves: a blank line at the beginning of a block, and a bare `return` at the end of a function.

    Declines where no statement was removed.
    """

    KEEP = ("def f():\n    x = 1\n\n    return x\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n\n        self.d = d\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.d = d\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.d = d\n"
            "        if not torch.cuda.is_available():\n            return\n        self.fast = torch.cuda.get_device_properties(0).major > 7\n",
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

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        """Without a bare `return` at the end, where the source has none."""
        body = updated.body.body
        if len(body) < 2 or not _is_bare_return(body[-1]) or _is_bare_return(original.body.body[-1]):
            return None
        return updated.with_changes(body=updated.body.with_changes(body=body[:-1]))


def _is_bare_return(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Return(value=None)], leading_lines=lines):
            return not any(line.comment for line in lines)
    return False
