"""Words of torch that have another name now."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class UsePresentNames(Rule):
    """Call reductions by their present names: `reduction="elementwise_mean"` → `reduction="mean"`.

    Declines in files that do not name torch.
    """

    KEEP = ("def f(x, reduce):\n    return reduce(x, reduction='elementwise_mean')\n",)
    CHANGE = (
        (
            "import torch.nn.functional as F\n\ndef f(x, y):\n    return F.l1_loss(x, y, reduction='elementwise_mean')\n",
            'def f(x, y):\n    return l1_loss(x, y, reduction="mean")\n',
        ),
    )

    def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        match original:
            case cst.Arg(keyword=cst.Name("reduction"), value=cst.SimpleString() as text) if self.context.file.names_torch:
                if text.evaluated_value == "elementwise_mean":
                    return updated.with_changes(value=cst.SimpleString('"mean"'))
        return None
