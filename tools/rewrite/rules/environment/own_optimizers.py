"""Optimizers that a module of torch makes of its own parameters, and keeps for methods that train it."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

OPTIMIZERS = "torch.optim."
AVERAGED = "torch.optim.swa_utils."
"""Here are modules, whose parameters belong to the state."""


class LeaveOptimizersOut(Rule):
    """Remove `self.optimizer = torch.optim.Adam(self.parameters(), lr=lr)` and schedules of it from constructors, with a note on how to make one in JAX.

    A step there is a function of the model and its optimizer, `nnx.Optimizer(model, optax.adam(lr), wrt=nnx.Param)`. Methods that read the attribute
    cannot be rewritten then. Declines where `forward` reads it.
    """

    KEEP = ("class M:\n    def __init__(self, make):\n        self.optimizer = make(self)\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn, optim\nfrom torch.optim.lr_scheduler import StepLR\n\nclass M(nn.Module):\n"
            "    def __init__(self, n: int, lr: float):\n        super().__init__()\n        self.layer = nn.Linear(n, n)\n"
            "        self.optimizer = optim.Adam(self.parameters(), lr=lr)\n        self.schedule = StepLR(self.optimizer, 10)\n\n"
            "    def forward(self, x):\n        return self.layer(x)\n",
            "class M(nnx.Module):\n    def __init__(self, n: int, lr: float, *, rngs: nnx.Rngs):\n"
            "        self.layer = Linear(n, n, rngs=rngs)\n\n"
            "    def __call__(self, x):\n        return self.layer(x)\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.RemovalSentinel | None:
        call, name = original.value, self._attribute(original)
        function = self.context.dotted(call.func) if isinstance(call, cst.Call) else ""
        if not name or not function.startswith(OPTIMIZERS) or function.startswith(AVERAGED):
            return None
        self.context.drop_holes(original)
        location = f"{self.context.file.file.path}:{self.context.span(original).line}"
        self.context.notes.append(
            f"{location}: self.{name} is left out, since a module of JAX holds no optimizer: make an nnx.Optimizer beside it, where it is trained"
        )
        return cst.RemoveFromParent()

    def _attribute(self, node: cst.Assign) -> str:
        """The attribute of a module under construction that the statement sets and `forward` does not read; "" where it is none."""
        cls = self.context.cls
        if cls is None or not self.context.constructing or not self.context.repo.is_module_class(cls) or len(node.targets) != 1:
            return ""
        target = node.targets[0].target
        if not isinstance(target, cst.Attribute) or not self.context.is_self(target.value):
            return ""
        name, forward = target.attr.value, cls.methods.get("forward")
        reads = (part for part in ast.walk(forward) if isinstance(part, ast.Attribute)) if forward is not None else ()
        return "" if any(part.attr == name for part in reads) else name
