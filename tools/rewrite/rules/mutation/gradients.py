"""What a call writes to a parameter keeps the parameter's gradient."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.parameter_loops import parameter_names
from migrate_agent.tools.rewrite.rules.parameters.variables import trained
from migrate_agent.tools.rewrite.rules.rule import Rule


class KeepParameterGradients(Rule):
    """Keep the gradient of a parameter that a call writes to: `self.w.copy_(v)` in `forward` → `self.w[...] = keep_gradient(v, self.w[...])`.

    `self.w.data = v` likewise, and `p` of a loop over parameters. Torch writes without a gradient, and what is computed afterwards has its gradient
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
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.a = nn.Linear(d, d)\n        self.b = nn.Linear(d, d)\n\n    def forward(self, x: torch.Tensor):\n"
            "        for p, q in zip(self.a.parameters(), self.b.parameters()):\n            p.data = p.data * 0.9 + q.data * 0.1\n"
            "        return self.a(x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n"
            "        self.b = Linear(d, d, rngs=rngs)\n\n    def __call__(self, x: jax.Array):\n"
            "        for p, q in zip(parameters(self.a), parameters(self.b)):\n"
            "            p[...] = keep_gradient(lax.stop_gradient(p[...]) * 0.9 + lax.stop_gradient(q[...]) * 0.1, p[...])\n"
            "        return self.a(x)\n",
        ),
    )

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | None:
        context = self.context
        key = context.function_key
        # A constructor is not differentiated, and what no call reaches cannot have a gradient.
        if key not in context.randomness.live or key in context.randomness.constructing or context.function is None:
            return None
        handles = parameter_names(context.function, context.span(original).line) if context.file.names_torch else frozenset()
        body = [self._keep_gradient(statement, handles) for statement in updated.body]
        return updated.with_changes(body=body) if any(new is not old for new, old in zip(body, updated.body, strict=True)) else None

    def _keep_gradient(self, statement: cst.BaseSmallStatement, handles: frozenset[str]) -> cst.BaseSmallStatement:
        match statement:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=held, slice=[only]) as target)]):
                whole = isinstance(only.slice, cst.Index) and isinstance(only.slice.value, cst.Ellipsis)
                if whole and self._is_parameter(held, handles):
                    build = self.context.build
                    return statement.with_changes(value=build("vendored.keep_gradient({v}, {w})", v=statement.value, w=target))
        return statement

    def _is_parameter(self, held: cst.BaseExpression, handles: frozenset[str]) -> bool:
        """Whether what is written to is a trained attribute of the module, or what a loop over parameters gives."""
        if isinstance(held, cst.Attribute):
            return self.context.cls is not None and self.context.is_self(held.value) and trained(self, held.attr.value)
        return isinstance(held, cst.Name) and held.value in handles
