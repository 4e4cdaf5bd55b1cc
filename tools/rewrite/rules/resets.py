"""`reset_parameters` of torch's own layers, which the vendored layers do not have: it is called as a function."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.calls import keyword
from migrate_agent.tools.rewrite.engine import Rule
from migrate_agent.tools.rewrite.randomness import RESETS, reset_layers


class CallResets(Rule):
    """`super().reset_parameters()` in a subclass of `nn.Linear` → `reset_affine(self, rngs=rngs)`; `self.norm.reset_parameters()` likewise.

    Declines where a class of the repository defines the method. A hole where it is that of another layer, or of layers of several kinds.
    """

    ORDER = 7
    KEEP = ("class Plain:\n    def f(self):\n        self.reset_parameters()\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Linear):\n    def __init__(self, d):\n        super().__init__(d, d)\n\n"
            "    def reset_parameters(self):\n        super().reset_parameters()\n        nn.init.zeros_(self.bias)\n",
            "class M(Linear):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        super().__init__(d, d, rngs=rngs)\n"
            "        self.reset_parameters(rngs=rngs)\n\n    def reset_parameters(self, *, rngs: nnx.Rngs):\n"
            "        reset_affine(self, rngs=rngs)\n        self.bias[...] = jnp.zeros_like(self.bias)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.norm = nn.LayerNorm(3)\n"
            "        self.norm.reset_parameters()\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.norm = LayerNorm(3, rngs=rngs)\n"
            "        reset_normalisation(self.norm)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context, func = self.context, original.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "reset_parameters" or not isinstance(updated.func, cst.Attribute):
            return None
        owner, receiver = updated.func.value, func.value
        upwards = isinstance(receiver, cst.Call) and isinstance(receiver.func, cst.Name) and receiver.func.value == "super"
        if upwards:
            owner = cst.Name(context.self_name())
        kinds = reset_layers(context.repo, context.cls, context.observed(receiver), upwards, context.is_self(receiver))
        helpers = {RESETS.get(kind, "") for kind in kinds}
        if not kinds:
            return None
        if len(helpers) != 1 or "" in helpers or original.args:
            context.hole(original, f"no rule for reset_parameters of {', '.join(sorted(kinds))}", "unknown-op")
            return None
        name = helpers.pop()
        call = cst.Call(context.helper(name), [cst.Arg(owner)])
        if name == "reset_normalisation":
            return call
        rngs = context.rngs()
        if rngs is None:
            context.hole(original, "no rngs is at hand to draw from", "rngs")
            return None
        return call.with_changes(args=[*call.args, keyword("rngs", rngs)])
