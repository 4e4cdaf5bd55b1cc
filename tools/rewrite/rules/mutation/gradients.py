"""What a call writes to a parameter keeps the parameter's gradient."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.parameters.variables import trained
from migrate_agent.tools.rewrite.rules.rule import Rule


class KeepParameterGradients(Rule):
    """Keep the gradient of a parameter that a call writes to: `self.w.copy_(v)` in `forward` → `self.w[...] = keep_gradient(v, self.w[...])`.

    `self.w.data = v` likewise. Torch writes without a gradient, and what is computed afterwards has its gradient
    with respect to the parameter all the same; in JAX that would be lost. Declines in constructors, and in what
    no call reaches.
    """

    KEEP = ("class Plain:\n    def f(self, v):\n        self.w[...] = v\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.ones(3))\n\n    def forward(self, x: torch.Tensor):\n        with torch.no_grad():\n"
            "            self.w.mul_(2)\n        return x * self.w\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.ones(3))\n\n"
            "    def __call__(self, x: jax.Array):\n        self.w[...] = keep_gradient(self.w[...] * 2, self.w[...])\n"
            "        return x * self.w[...]\n",
        ),
    )

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | None:
        context = self.context
        key = context.function_key
        # A constructor is not differentiated, and what no call reaches cannot have a gradient.
        if context.cls is None or key not in context.randomness.live or key in context.randomness.constructing:
            return None
        body = [self._keep_gradient(statement) for statement in updated.body]
        return updated.with_changes(body=body) if any(new is not old for new, old in zip(body, updated.body, strict=True)) else None

    def _keep_gradient(self, statement: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
        match statement:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Attribute() as held, slice=[only]) as target)]):
                whole = isinstance(only.slice, cst.Index) and isinstance(only.slice.value, cst.Ellipsis)
                if whole and self.context.is_self(held.value) and trained(self, held.attr.value):
                    build = self.context.build
                    return statement.with_changes(value=build("vendored.keep_gradient({v}, {w})", v=statement.value, w=target))
        return statement
