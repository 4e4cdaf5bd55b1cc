"""Numbers that calls count up are variables of the module."""

from __future__ import annotations

import ast

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

COMPARING = {"min": "jnp.minimum({a}, {b})", "max": "jnp.maximum({a}, {b})"}
"""Builtins that ask which of two numbers is less, and what takes arrays instead."""


class CountInVariables(Rule):
    """Count calls in variables: `self.steps = 0`, where `forward` says `self.steps += 1` → `self.steps = nnx.Cache(jnp.asarray(0))`.

    It is read as `self.steps[...]`, and no part of the `state_dict`, as in torch. `min` and `max` of what is computed from it, as schedules have
    them, are of arrays. Declines where no call counts, and for what grows only while the module is made.
    """

    KEEP = ("class Plain:\n    def __init__(self):\n        self.n = 0\n\n    def f(self):\n        self.n += 1\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.steps = 0\n\n"
            "    def forward(self, x: torch.Tensor):\n        self.steps += 1\n        return x * self.steps\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.steps = nnx.Cache(jnp.asarray(0))\n\n"
            "    def __call__(self, x: jax.Array):\n        self.steps[...] += 1\n        return x * self.steps[...]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, total):\n        super().__init__()\n"
            "        self.steps, self.total = 0, total\n        self.steps = 0\n\n"
            "    def forward(self, x: torch.Tensor):\n        self.steps += 1\n        share = self.steps / self.total\n"
            "        n = min(x.shape[0], self.total)\n        return x * min(1.0, share) + max(self.steps, 3) + n\n",
            "class M(nnx.Module):\n    def __init__(self, total, *, rngs: nnx.Rngs):\n"
            "        self.steps, self.total = 0, total\n        self.steps = nnx.Cache(jnp.asarray(0))\n\n"
            "    def __call__(self, x: jax.Array):\n        self.steps[...] += 1\n        share = self.steps[...] / self.total\n"
            "        n = min(x.shape[0], self.total)\n"
            "        return x * jnp.minimum(1.0, share) + jnp.maximum(self.steps[...], 3) + n\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.steps = 0\n"
            "        self.rate = 9.0\n\n    def forward(self, x: torch.Tensor):\n        self.steps += 1\n"
            "        self.rate = 9.0 / self.steps\n        return x * self.rate\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.steps = nnx.Cache(jnp.asarray(0))\n"
            "        self.rate = nnx.Cache(jnp.asarray(9.0))\n\n    def __call__(self, x: jax.Array):\n        self.steps[...] += 1\n"
            "        self.rate[...] = 9.0 / self.steps[...]\n        return x * self.rate[...]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.wide = 1\n"
            "        self.fc = self._layer(d)\n\n    def _layer(self, d):\n        self.wide *= 2\n        return nn.Linear(d, d * self.wide)\n\n"
            "    def forward(self, x: torch.Tensor):\n        return self.fc(x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.wide = 1\n        self.fc = self._layer(d, rngs=rngs)\n\n"
            "    def _layer(self, d, *, rngs: nnx.Rngs):\n        self.wide *= 2\n        return Linear(d, d * self.wide, rngs=rngs)\n\n"
            "    def __call__(self, x: jax.Array):\n        return self.fc(x)\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        context, target = self.context, original.targets[0].target
        if len(original.targets) != 1 or not isinstance(target, cst.Attribute) or not context.is_self(target.value):
            return None
        if context.path[-1:] != ["__init__"] or not context.counts(target.attr.value):
            return None
        return updated.with_changes(value=context.build("nnx.Cache(jnp.asarray({value}))", value=updated.value))

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context, func = self.context, original.func
        if not isinstance(func, cst.Name) or func.value not in COMPARING or func.value in context.taken or not context.class_facts.counters:
            return None
        if len(original.args) != 2 or any(argument.keyword or argument.star for argument in original.args):
            return None
        counted = self._counted_names()
        if context.path[-1:] == ["__init__"] or not any(self._is_counted(argument.value, counted) for argument in original.args):
            return None
        return context.build(COMPARING[func.value], a=updated.args[0].value, b=updated.args[1].value)

    def _is_counted(self, value: cst.BaseExpression, counted: frozenset[str]) -> bool:
        """Whether a number is computed from one that calls count up."""
        own = any(self._is_counter(node) for node in m.findall(value, m.Attribute()))
        return own or any(isinstance(node, cst.Name) and node.value in counted for node in m.findall(value, m.Name()))

    def _is_counter(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Attribute) and self.context.is_self(node.value) and self.context.counts(node.attr.value)

    def _counted_names(self) -> frozenset[str]:
        """The local names that are assigned what follows from a counted number."""
        assigned = [node for node in walk(self.context.function) if isinstance(node, ast.Assign)] if self.context.function else []
        names: set[str] = set()
        for _ in assigned:
            for node in assigned:
                attributes = {inner.attr for inner in walk(node.value) if isinstance(inner, ast.Attribute)}
                reads = {inner.id for inner in walk(node.value) if isinstance(inner, ast.Name)}
                if reads & names or any(map(self.context.counts, attributes)):
                    names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        return frozenset(names)
