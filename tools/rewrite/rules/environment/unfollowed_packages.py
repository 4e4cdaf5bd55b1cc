"""Names from installed packages that need torch, and whose source cannot be followed."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.repo import unfollowed
from migrate_agent.tools.rewrite.rules.rule import Rule


class RefuseUnfollowedPackages(Rule):
    """Refuse packages that need torch and cannot be followed: `torchmetrics.Accuracy()` → a hole where it is named; in an annotation → `Any`.

    What does not use it is not held up. Declines where the package's source is at hand: then what is used of
    it is rewritten too.
    """

    KEEP = ("import numpy as np\n\n\ndef f(x):\n    return np.abs(x)\n",)

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression | None:
        context, parent = self.context, self.context.parent()
        if (isinstance(parent, cst.Attribute) and parent.attr is original) or (isinstance(parent, cst.Arg) and parent.keyword is original):
            return None
        package = context.repo.unfollowed(context.file, original.value) if context.dotted(original) else ""
        if not package:
            return None
        if any(isinstance(node, cst.Annotation) for node in context.stack):
            return None if isinstance(parent, cst.Attribute) else context.use(cst.Name("Any"))
        context.hole(original, unfollowed(original.value, package), "torch-package")
        return None

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        """`pl.LightningModule` in an annotation."""
        whole = not isinstance(self.context.parent(), cst.Attribute) and any(isinstance(n, cst.Annotation) for n in self.context.stack)
        return self.context.use(cst.Name("Any")) if whole and self.context.unfollowed(original) else None
