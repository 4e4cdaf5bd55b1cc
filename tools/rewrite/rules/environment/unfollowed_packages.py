"""Names from installed packages that need torch, and whose source cannot be followed."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache

import libcst as cst

from migrate_agent.tools.rewrite.analysis.repo import unfollowed
from migrate_agent.tools.rewrite.rules.rule import Rule


class RefuseUnfollowedPackages(Rule):
    """Refuse packages that need torch and cannot be followed: `torchmetrics.Accuracy()` → a hole where it is named; in an annotation → `Any`,
    also where the package is absent: no port could import it.

    What does not use it is not held up. Declines where the package's source is at hand: then what is used of
    it is rewritten too.
    """

    KEEP = ("import numpy as np\n\n\ndef f(x: np.ndarray):\n    return np.abs(x)\n",)
    CHANGE = (
        (
            "import torch\nfrom an_absent_package.data import Data\n\ndef f(data: Data):\n    return torch.relu(data.x)\n",
            "from an_absent_package.data import Data\n\ndef f(data: Any):\n    return jax.nn.relu(data.x)\n",
        ),
    )

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression | None:
        context, parent = self.context, self.context.parent()
        if (isinstance(parent, cst.Attribute) and parent.attr is original) or (isinstance(parent, cst.Arg) and parent.keyword is original):
            return None
        package = context.repo.unfollowed(context.file, original.value) if context.dotted(original) else ""
        in_annotation = any(isinstance(node, cst.Annotation) for node in context.stack)
        if in_annotation and (package or self._is_absent(original)):
            return None if isinstance(parent, cst.Attribute) else context.use(cst.Name("Any"))
        if not package:
            return None
        context.hole(original, unfollowed(original.value, package), "torch-package")
        return None

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        """`pl.LightningModule` in an annotation."""
        whole = not isinstance(self.context.parent(), cst.Attribute) and any(isinstance(n, cst.Annotation) for n in self.context.stack)
        is_out_of_reach = whole and (self.context.unfollowed(original) or self._is_absent(original))
        return self.context.use(cst.Name("Any")) if is_out_of_reach else None

    def _is_absent(self, node: cst.Name | cst.Attribute) -> bool:
        """Whether a name is imported from a package that is neither of the repository nor installed."""
        root = self.context.dotted(node).partition(".")[0]
        imports = self.context.file.bindings.values()
        is_own = any(module.partition(".")[0] == root for module in self.context.repo.modules)
        return bool(root) and not is_own and any(dotted.partition(".")[0] == root for dotted in imports) and not is_installed(root)


@cache
def is_installed(package: str) -> bool:
    """Whether a package of this name can be imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return package in sys.modules
