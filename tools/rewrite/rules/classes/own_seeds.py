"""Constructors that seed torch's global stream of random numbers."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.self_references import family
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

SEEDS = "torch.manual_seed"
OF_DEVICES = frozenset({"torch.cuda.manual_seed", "torch.cuda.manual_seed_all"})


class SeedRngs(Rule):
    """Draw what a constructor draws after `torch.manual_seed(seed)` from streams of that seed: `rngs = nnx.Rngs(seed)`.

    So initial values follow from the seed alone, as they do in torch. An attribute for the generator that the call gives back goes where nothing reads it.
    Declines elsewhere: JAX has no global stream.
    """

    KEEP = ("def f(seed):\n    manual_seed = seed + 1\n    return manual_seed\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n, seed):\n        super().__init__()\n"
            "        self.seed = torch.manual_seed(seed)\n        self.f = nn.Linear(n, 2, bias=False)\n\n"
            "    def forward(self, x: torch.Tensor):\n        return self.f(x)\n",
            "class M(nnx.Module):\n    def __init__(self, n, seed, *, rngs: nnx.Rngs):\n        rngs = nnx.Rngs(seed)\n"
            "        self.f = Linear(n, 2, bias=False, rngs=rngs)\n\n"
            "    def __call__(self, x: jax.Array):\n        return self.f(x)\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        match original:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)))], value=cst.Call() as call
            ):
                return self._streams(original, call) if not self._is_read(name) else None
        return None

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.Assign | cst.RemovalSentinel | None:
        call = original.value
        if not isinstance(call, cst.Call):
            return None
        if self.context.dotted(call.func) in OF_DEVICES and self.context.constructing:
            self.context.drop_holes(original)
            return cst.RemoveFromParent()
        return self._streams(original, call)

    def _streams(self, statement: cst.CSTNode, call: cst.Call) -> cst.Assign | None:
        """`rngs = nnx.Rngs(seed)` in place of a statement that seeds torch's stream with one argument, in a constructor itself."""
        context = self.context
        if context.dotted(call.func) != SEEDS or len(call.args) != 1 or not context.constructing or len(context.functions) != 1:
            return None
        context.drop_holes(statement)
        value = context.build("nnx.Rngs({seed})", seed=call.args[0].value.deep_clone())
        return cst.Assign([cst.AssignTarget(cst.Name("rngs"))], value)

    def _is_read(self, name: str) -> bool:
        """Whether a method of the class, of its bases or of what derives from it reads an attribute of its own."""
        model = self.context.cls
        if model is None:
            return True
        nodes = [node for one in family(self.context.repo, model) for node in walk(one.node) if one.own.get(id(node)) == name]
        return any(isinstance(getattr(node, "ctx", None), ast.Load) for node in nodes)
