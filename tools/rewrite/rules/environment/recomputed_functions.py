"""Autograd functions that compute again in the backward pass what they were given: gradient checkpointing by hand."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.autograd_functions.recomputation import Recomputation, recomputation
from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.rules.calls.torch_references import FUNCTION_BASES
from migrate_agent.tools.rewrite.rules.rule import Rule


class CheckpointRecomputedFunctions(Rule):
    """Checkpoint what an autograd function computes twice: `class F(torch.autograd.Function)` → a class with an `apply` of `jax.checkpoint`.

    Its `forward` calls a function that it is given, without gradients, and its `backward` calls it again
    and asks torch for the gradients. Whoever calls `F.apply` stays as it is. Declines where `forward` does
    more, and where `backward` changes the gradients.
    """

    KEEP = ("class F:\n    @staticmethod\n    def apply(run, *args):\n        return run(*args)\n",)
    CHANGE = (
        (
            "import torch\n\nclass F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, run, length, *args):\n"
            "        ctx.run = run\n        ctx.inputs = list(args[:length])\n        ctx.params = list(args[length:])\n"
            "        with torch.no_grad():\n            outputs = ctx.run(*ctx.inputs)\n        return outputs\n\n"
            "    @staticmethod\n    def backward(ctx, *grads):\n        ctx.inputs = [x.detach().requires_grad_(True) for x in ctx.inputs]\n"
            "        with torch.enable_grad():\n            outputs = ctx.run(*ctx.inputs)\n"
            "        found = torch.autograd.grad(outputs, ctx.inputs + ctx.params, grads, allow_unused=True)\n"
            "        return (None, None) + found\n",
            "class F:\n    @staticmethod\n    def apply(run, length, *args):\n        return checkpoint(run, *args[:length])\n",
        ),
    )

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef | None:
        context = self.context
        if context.cls is None or not any(context.dotted(base.value) in FUNCTION_BASES for base in original.bases):
            return None
        forward, backward = (context.cls.methods.get(name) for name in ("forward", "backward"))
        if not isinstance(forward, ast.FunctionDef) or not isinstance(backward, ast.FunctionDef) or len(context.cls.methods) != 2:
            return None
        repeated = recomputation(forward, backward, self._dotted)
        method = next((node for node in updated.body.body if isinstance(node, cst.FunctionDef) and node.name.value == "forward"), None)
        if repeated is None or method is None:
            return None
        context.drop_holes(original)
        others = [node for node in updated.body.body if not isinstance(node, cst.FunctionDef)]
        body = updated.body.with_changes(body=[*others, self._apply(method, repeated)])
        return updated.with_changes(bases=[], lpar=cst.MaybeSentinel.DEFAULT, rpar=cst.MaybeSentinel.DEFAULT, body=body)

    def _dotted(self, node: ast.AST) -> str:
        return self.context.facts.dotted.get(span_of(node, self.context.file.lines), "")

    def _apply(self, forward: cst.FunctionDef, repeated: Recomputation) -> cst.FunctionDef:
        """`forward` without its context, as what checkpoints the function that it is given."""
        call = self.context.build(f"vendored.checkpoint({', '.join([repeated.function, *repeated.arguments])})")
        line = cst.SimpleStatementLine([cst.Return(call)])
        first, *rest = forward.params.params
        del first
        return forward.with_changes(
            name=cst.Name("apply"),
            params=forward.params.with_changes(params=rest),
            body=cst.IndentedBlock([line]),
            leading_lines=[],
        )
