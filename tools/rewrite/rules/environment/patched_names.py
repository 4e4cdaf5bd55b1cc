"""What a file hangs into a module of torch is its own class or function, and is called so."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class NamePatches(Rule):
    """Call what a file hangs into torch by its own name: `nn.Masked = Masked` goes, and `nn.Masked(3)` → `Masked(3)`.

    Declines where torch has a thing of that name: code elsewhere would get another one.
    """

    KEEP = ("import math\n\ndef half(x):\n    return x / 2\n\n\nmath.half = half\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass Twice(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return x * 2\n\n\n"
            "nn.Twice = Twice\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.twice = nn.Twice()\n\n"
            "    def forward(self, x: torch.Tensor):\n        return self.twice(x)\n",
            "class Twice(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def __call__(self, x: jax.Array):\n        return x * 2\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.twice = Twice(rngs=rngs)\n\n"
            "    def __call__(self, x: jax.Array):\n        return self.twice(x)\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        name = self._own(original)
        return cst.Name(name) if name and self.context.dotted(original) == self.context.file.own(name) else None

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel | None:
        match original.body:
            case [cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)], value=cst.Name(value=value))]:
                return cst.RemoveFromParent() if self._own(target) == value and not self.context.path else None
        return None

    def _own(self, node: cst.Attribute) -> str:
        """The class or function of the file that it hangs into torch under this name; "" for all else."""
        return self.context.file.patches.get(cst.Module([]).code_for_node(node), "")
