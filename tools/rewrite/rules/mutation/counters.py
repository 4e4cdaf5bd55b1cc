"""Numbers that calls count up are variables of the module."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class CountInVariables(Rule):
    """Count calls in variables: `self.steps = 0`, where `forward` says `self.steps += 1` → `self.steps = nnx.Cache(jnp.asarray(0))`.

    It is read as `self.steps[...]`, and no part of the `state_dict`, as in torch. Declines where no call counts.
    """

    KEEP = ("class Plain:\n    def __init__(self):\n        self.n = 0\n\n    def f(self):\n        self.n += 1\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.steps = 0\n\n"
            "    def forward(self, x: torch.Tensor):\n        self.steps += 1\n        return x * self.steps\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.steps = nnx.Cache(jnp.asarray(0))\n\n"
            "    def __call__(self, x: jax.Array):\n        self.steps[...] += 1\n        return x * self.steps[...]\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        context, target = self.context, original.targets[0].target
        if len(original.targets) != 1 or not isinstance(target, cst.Attribute) or not context.is_self(target.value):
            return None
        if context.path[-1:] != ["__init__"] or not context.counts(target.attr.value):
            return None
        return updated.with_changes(value=context.build("nnx.Cache(jnp.asarray({value}))", value=updated.value))
