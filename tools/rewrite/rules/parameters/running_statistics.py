"""`F.batch_norm` called by a subclass of batch normalisation, with the running statistics that it inherits."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrate_agent.tools.rewrite.rules.parameters.variables import own_layer
from migrate_agent.tools.rewrite.rules.rule import Rule

STATISTICS: Mapping[str, str] = {"running_mean": "mean", "running_var": "var"}
"""Torch's name of a statistic → that of its variable in NNX's layer."""


class MoveInheritedStatistics(Rule):
    """Update running statistics that a subclass passes on: `F.batch_norm(x, self.running_mean, self.running_var, …)` → `tracked_batch_norm(x, self.mean, self.var, …)`.

    They may also be `self.running_mean if … else None`. Declines where the statistics are anything else.
    """

    KEEP = ("def f(self, x, norm):\n    return norm(x, self.running_mean, self.running_var)\n",)
    CHANGE = (
        (
            "import torch.nn.functional as F\nfrom torch import nn\n\nclass M(nn.BatchNorm2d):\n    def forward(self, x):\n"
            "        return F.batch_norm(x, self.running_mean if self.affine else None, self.running_var if self.affine else None, training=True)\n",
            "class M(BatchNorm2d):\n"
            "    def __call__(self, x):\n        return tracked_batch_norm(\n"
            "            x, self.mean if self.affine else None, self.var if self.affine else None, training=True\n        )\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        if self.context.dotted(original.func) != "torch.nn.functional.batch_norm":
            return None
        if not any(base.startswith("torch.nn.BatchNorm") for base in own_layer(self)):
            return None
        # Behind a star it cannot be told which argument is a statistic.
        if any(argument.star for argument in original.args):
            return None
        arguments, replaced = list(updated.args), set()
        for position, argument in enumerate(original.args):
            name = argument.keyword.value if argument.keyword else {1: "running_mean", 2: "running_var"}.get(position, "")
            if name in STATISTICS:
                value = self._statistic_variable(argument.value, arguments[position].value, name)
                if value is None:
                    return None
                arguments[position] = arguments[position].with_changes(value=value)
                replaced.add(name)
        # The helper moves both statistics, so both must be variables (or None).
        return cst.Call(self.context.helper("tracked_batch_norm"), arguments) if replaced == STATISTICS.keys() else None

    def _statistic_variable(self, original: cst.BaseExpression, updated: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
        """The variable that holds what an expression reads; `None` where it reads anything but the layer's own statistic, or None."""
        match original, updated:
            case cst.Name(value="None"), _:
                return updated
            case cst.Attribute(attr=cst.Name(value=read)), cst.Attribute() if read == name and self.context.is_self(original.value):
                return updated.with_changes(attr=cst.Name(STATISTICS[name]))
            case cst.IfExp(), cst.IfExp():
                body = self._statistic_variable(original.body, updated.body, name)
                other = self._statistic_variable(original.orelse, updated.orelse, name)
                return updated.with_changes(body=body, orelse=other) if body and other else None
        return None
