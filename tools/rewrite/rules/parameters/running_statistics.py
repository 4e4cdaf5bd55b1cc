"""`F.batch_norm` and `F.instance_norm` with running statistics that a subclass of such a layer inherits, or that a list of parameters has."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import libcst as cst

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import TRACKING, argument_names
from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.rules.parameters.variables import PARAMETER_CONTAINERS, own_layer, values_given_to
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import layers
from migrate_agent.tools.scan.nodes import walk

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
        (
            "import torch.nn.functional as F\nfrom torch.nn.modules.batchnorm import _BatchNorm\n\nclass M(_BatchNorm):\n    def forward(self, x):\n"
            "        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.training, 0.1, self.eps)\n",
            "class M(BatchNormNd):\n    def __init__(self, *args, rngs: nnx.Rngs, **kwargs):\n        super().__init__(*args, rngs=rngs, **kwargs)\n"
            "        self.deterministic = False\n\n    def __call__(self, x):\n        return tracked_batch_norm(\n"
            "            x, self.mean, self.var, self.weight, self.bias, not self.deterministic, 0.1, self.eps\n        )\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        dotted = self.context.dotted(original.func)
        if dotted not in TRACKING or not any(STATISTICS.keys() <= layers()[base].params.keys() for base in own_layer(self)):
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
        helper = self.context.helper("tracked_" + dotted.rpartition(".")[2])
        return cst.Call(helper, arguments) if replaced == STATISTICS.keys() else None

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


class MoveListedStatistics(Rule):
    """Update running statistics that a list of parameters has: `F.batch_norm(x, self.stats[0], self.stats[1], …)` → `tracked_batch_norm(…)`.

    The items of `ParameterList` are variables, and so are local names for them. Declines where a statistic may be anything else.
    """

    KEEP = ("def f(self, x, stats):\n    mean, var = stats[0], stats[1]\n    return norm(x, mean, var)\n",)
    CHANGE = (
        (
            "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.stats = nn.ParameterList([nn.Parameter(torch.zeros(d)), nn.Parameter(torch.ones(d))])\n\n"
            "    def forward(self, x):\n        mean, var = self.stats[0], self.stats[1]\n        return F.batch_norm(x, mean, var, training=True)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.stats = ParameterList([nnx.Param(jnp.zeros(d)), nnx.Param(jnp.ones(d))])\n\n"
            "    def __call__(self, x):\n        mean, var = self.stats[0], self.stats[1]\n        return tracked_batch_norm(x, mean, var, training=True)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        dotted = self.context.dotted(original.func)
        if dotted not in TRACKING or any(argument.star for argument in original.args):
            return None
        names, _ = TRACKING[dotted]
        arguments = {
            argument.keyword.value if argument.keyword else names[position]: argument.value
            for position, argument in enumerate(original.args)
            if argument.keyword or position < len(names)
        }
        statistics = [arguments.get(name) for name in STATISTICS]
        if not all(value is not None and self._is_item(value) for value in statistics):
            return None
        # The variables themselves, where `ReadVariables` has made arrays of them.
        rows = [
            new if old.value not in statistics else new.with_changes(value=old.value)
            for old, new in zip(original.args, updated.args, strict=True)
        ]
        return cst.Call(self.context.helper("tracked_" + dotted.rpartition(".")[2]), rows)

    def _is_item(self, value: cst.BaseExpression) -> bool:
        """Whether an expression gives an item of a container of parameters, alone or by a name that stands for nothing else."""
        context = self.context
        match value:
            case cst.Subscript(value=holder, slice=[cst.SubscriptElement(slice=cst.Index())]):
                fact = context.observed(holder)
                return fact is not None and bool(fact.kinds) and set(fact.kinds) <= PARAMETER_CONTAINERS
            case cst.Name(value=name) if context.function is not None and name not in argument_names(context.function):
                nodes = [*walk(context.function)]
                stores = [node for node in nodes if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)]
                values = [one for node in nodes if isinstance(node, ast.Assign) for one in values_given_to(node, name)]
                return 0 < len(stores) == len(values) and all(self._is_item_of_container(one) for one in values)
        return False

    def _is_item_of_container(self, value: ast.expr) -> bool:
        if not isinstance(value, ast.Subscript) or isinstance(value.slice, ast.Slice):
            return False
        fact = self.context.facts.observed.get(span_of(value.value, self.context.file.lines))
        return fact is not None and bool(fact.kinds) and set(fact.kinds) <= PARAMETER_CONTAINERS
