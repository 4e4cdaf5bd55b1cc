"""Draws from distributions, which take their keys from the `rngs` at hand."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.randomness import is_sample_call, own_draws
from migrate_agent.tools.rewrite.rules.apply_tables import with_rngs
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import Refuse


class DrawFromDistributions(Rule):
    """Give draws their keys: `Normal(loc, scale).rsample()` → `Normal(loc, scale).rsample(rngs=self.rngs)`.

    `super().sample()` in a class that derives from a distribution likewise. Declines (a hole) where no `rngs` is in scope.
    """

    KEEP = ("def f(names: list):\n    return names.sample()\n",)
    CHANGE = (
        (
            "from torch.distributions import Normal\n\ndef f(loc, scale):\n    q = Normal(loc, scale)\n    return q.rsample((3,)), q.mean, q.log_prob(loc)\n",
            "def f(loc, scale, *, rngs: nnx.Rngs):\n    q = Normal(loc, scale)\n    return q.rsample((3,), rngs=rngs), q.mean, q.log_prob(loc)\n",
        ),
        (
            "import torch\n\nclass Column(torch.distributions.Categorical):\n    def sample(self):\n        return super().sample().unsqueeze(-1)\n",
            "class Column(Categorical):\n    def sample(self, *, rngs: nnx.Rngs):\n"
            "        return jnp.expand_dims(super().sample(rngs=rngs), -1)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        if not isinstance(original.func, cst.Attribute):
            return None
        receiver = context.observed(original.func.value)
        if not is_sample_call(context.repo, context.cls, original.func, receiver):
            return None
        # One of the repository's own need not draw.
        if not own_draws(context.repo, receiver, original.func.attr.value) <= context.randomness.parameter:
            return None
        try:
            return with_rngs(context, updated, original.func.attr.value)
        except Refuse as refusal:
            context.hole(original, refusal.reason, refusal.code)
            return None
