"""Calls that TorchScript runs beside each other, each with a future of its result."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.randomness import functions_named
from migrate_agent.tools.rewrite.rules.rule import Rule

FUTURE = "object:torch.Future"


class CallForks(Rule):
    """Make the call where its future was: `torch.jit.fork(f, x)` → `f(x)`, `torch.jit.wait(y)` and `y.wait()` → `y`; XLA orders what is independent itself.

    Without TorchScript, `fork` runs its function at once. Declines (a hole) where that draws random numbers and needs an `nnx.Rngs`.
    """

    KEEP = ("def f(pool, g, x):\n    return pool.wait(pool.fork(g, x))\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.a, self.b = nn.Linear(d, d), nn.Linear(d, d)\n\n    def forward(self, x: torch.Tensor):\n"
            "        a = torch.jit.fork(self.a, x)\n        rest = [torch.jit._fork(part, x) for part in (self.a, self.b)]\n"
            "        b = torch.jit.fork(lambda y: y * 2, x)\n"
            "        return torch.jit.wait(a), [torch.jit._wait(one) for one in rest], torch.jit.wait(b)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.a, self.b = Linear(d, d, rngs=rngs), Linear(d, d, rngs=rngs)\n\n    def __call__(self, x: jax.Array):\n"
            "        a = self.a(x)\n        rest = [part(x) for part in (self.a, self.b)]\n        b = (lambda y: y * 2)(x)\n        return a, [one for one in rest], b\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        match self.context.dotted(original.func), updated.args:
            case (("torch.jit.fork" | "torch.jit._fork"), [cst.Arg(keyword=None, star="", value=function), *arguments]):
                called = original.args[0].value
                names = functions_named(self.context.repo, self.context.dotted(called), self.context.observed(called))
                if names & self.context.randomness.parameter:
                    self.context.hole(original, "what is forked needs an nnx.Rngs", "randomness")
                    return None
                self.context.drop_holes(original.func)
                wrapped = isinstance(function, cst.Lambda) and not function.lpar
                return cst.Call(function.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]) if wrapped else function, arguments)
            case (("torch.jit.wait" | "torch.jit._wait"), [cst.Arg(keyword=None, star="", value=future)]):
                self.context.drop_holes(original.func)
                return future
        fact = self.context.observed(original.func.value) if isinstance(original.func, cst.Attribute) and not original.args else None
        if fact is not None and fact.kinds == (FUTURE,) and isinstance(updated.func, cst.Attribute) and updated.func.attr.value == "wait":
            return updated.func.value
        return None
