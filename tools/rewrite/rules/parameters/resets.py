"""`reset_parameters` of torch's own layers, which the vendored layers do not have: it is called as a function."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.randomness import RESETS, layer_named, layers_reset
from migrate_agent.tools.rewrite.rules.apply_tables import keyword
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import layers


class CallResets(Rule):
    """Call resets of torch's layers as functions: `super().reset_parameters()` in a subclass of `nn.Linear` → `reset_affine(self, rngs=rngs)`.

    `nn.Linear.reset_parameters(self)` and `self.norm.reset_parameters()` likewise; `reset_layer(m, rngs=rngs)` where it is a layer of several
    kinds, those of the repository that draw among them. Declines where a class of the repository defines the method. A hole where it is that of another
    layer, or that of a layer at times only.
    """

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
            "from torch import nn\n\nclass M(nn.Linear):\n    def __init__(self, d):\n        nn.Linear.__init__(self, d, d)\n\n"
            "    def reset_parameters(self):\n        nn.Linear.reset_parameters(self)\n",
            "class M(Linear):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        Linear.__init__(self, d, d, rngs=rngs)\n"
            "        self.reset_parameters(rngs=rngs)\n\n    def reset_parameters(self, *, rngs: nnx.Rngs):\n"
            "        reset_affine(self, rngs=rngs)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.norm = nn.LayerNorm(3)\n"
            "        self.norm.reset_parameters()\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.norm = LayerNorm(3, rngs=rngs)\n"
            "        reset_normalisation(self.norm)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.one = nn.Linear(d, d) if d else nn.LayerNorm(3)\n        self.one.reset_parameters()\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.one = (Linear(d, d, rngs=rngs) if d else LayerNorm(3, rngs=rngs))\n        reset_layer(self.one, rngs=rngs)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context, func = self.context, original.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "reset_parameters" or not isinstance(updated.func, cst.Attribute):
            return None
        owner, receiver = updated.func.value, func.value
        upwards = isinstance(receiver, cst.Call) and isinstance(receiver.func, cst.Name) and receiver.func.value == "super"
        # The function resets the parameters of an instance; `super()` is none.
        if upwards:
            owner = cst.Name(context.self_name())
        kinds = layers_reset(context.repo, context.cls, context.observed(receiver), upwards, context.is_self(receiver))
        arguments = updated.args
        if (layer := layer_named(context.dotted(func))) and arguments and not arguments[0].star and arguments[0].keyword is None:
            kinds, owner, arguments = {layer}, arguments[0].value, arguments[1:]
        helpers = {RESETS.get(kind, "") for kind in kinds}
        observed = {kind.removeprefix("module:") for kind in fact.kinds} if (fact := context.observed(receiver)) else set()
        mixed = not kinds and bool(observed & layers().keys())
        if not kinds and not mixed:
            return None
        if mixed and all(map(self._resets_itself, observed - layers().keys())):
            kinds, helpers, mixed = observed, {RESETS.get(kind, "") for kind in observed & layers().keys()} | {"reset_layer"}, False
        if mixed or "" in helpers or arguments:
            context.hole(original, f"no rule for reset_parameters of {', '.join(sorted(kinds or observed))}", "unknown-op")
            return None
        name = helpers.pop() if len(helpers) == 1 else "reset_layer"
        call = cst.Call(context.helper(name), [cst.Arg(owner)])
        # Ones and zeros need no key.
        if name == "reset_normalisation":
            return call
        rngs = context.rngs()
        if rngs is None:
            context.hole(original, "no rngs is at hand to draw from", "rngs")
            return None
        return call.with_changes(args=[*call.args, keyword("rngs", rngs)])

    def _resets_itself(self, dotted: str) -> bool:
        """Whether a class of the repository has a `reset_parameters` of its own that draws: then it takes `rngs`."""
        repo, model = self.context.repo, self.context.repo.class_of(dotted)
        own = next((one for one in repo.ancestors(model) if "reset_parameters" in one.methods), None) if model else None
        return own is not None and (own.file.file.path, f"{own.qualname}.reset_parameters") in self.context.randomness.parameter
