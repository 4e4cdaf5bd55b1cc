"""Imports of torch, of which nothing is left."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class DropTorchImports(Rule):
    """Remove imports of torch: `import torch` → nothing.

    Nothing of torch is left where there is no hole. Declines for other packages.
    """

    KEEP = ("import math\nfrom os import path\n",)
    CHANGE = (("import math\nimport torch\nfrom torch import nn\n", "import math\n"),)

    def leave_Import(self, original: cst.Import, updated: cst.Import) -> cst.RemovalSentinel | cst.Import | None:
        others = [alias for alias in updated.names if not _is_torch(alias)]
        if len(others) == len(updated.names):
            return None
        if not others:
            return cst.RemoveFromParent()
        return updated.with_changes(names=[*others[:-1], others[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])

    def leave_ImportFrom(self, original: cst.ImportFrom, updated: cst.ImportFrom) -> cst.RemovalSentinel | None:
        module = cst.Module([]).code_for_node(updated.module) if updated.module else ""
        if updated.relative:
            return None
        root = module.partition(".")[0]
        return cst.RemoveFromParent() if root in ("torch", "torchaudio") or module == "einops.layers.torch" else None


def _is_torch(alias: cst.ImportAlias) -> bool:
    return alias.evaluated_name.partition(".")[0] in ("torch", "torchaudio")
