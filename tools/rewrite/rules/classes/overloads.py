"""Signatures that are there for TorchScript alone."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

OVERLOADS = frozenset({"torch.jit._overload", "torch.jit._overload_method"})


class DropOverloads(Rule):
    """Remove definitions under `@torch.jit._overload_method` and `@torch.jit._overload`: a later one of the same name is what runs.

    Declines where none follows in the same block: then the definition itself runs.
    """

    KEEP = ("def twice(f):\n    return f\n\n@twice\ndef g(x):\n    pass\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    @torch.jit._overload_method\n    def forward(self, x: list) -> torch.Tensor:\n"
            "        pass\n\n    @torch.jit._overload_method\n    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        pass\n\n"
            "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return x * 2\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n"
            "    def __call__(self, x: jax.Array) -> jax.Array:\n        return x * 2\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.RemovalSentinel | None:
        if not self._is_overload(original) or not self._is_replaced(original):
            return None
        self.context.drop_holes(original, *original.decorators)
        return cst.RemoveFromParent()

    def _is_overload(self, function: cst.FunctionDef) -> bool:
        return any(self.context.dotted(decorator.decorator) in OVERLOADS for decorator in function.decorators)

    def _is_replaced(self, function: cst.FunctionDef) -> bool:
        block = self.context.parent()
        body = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
        later = body[body.index(function) + 1 :] if function in body else []
        definitions = [node for node in later if isinstance(node, cst.FunctionDef) and node.name.value == function.name.value]
        return any(not self._is_overload(definition) for definition in definitions)
