"""Boolean masks that are made of nothing but numbers, and what they select."""

from __future__ import annotations

from collections.abc import Mapping, Set

import libcst as cst

from migrate_agent.tools.rewrite.analysis.static_masks import NOTHING, Selections, selections
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule

OPERATORS: Mapping[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr,
}
"""Operator of a statement that changes a name → that of the expression."""


class ComputeMasksAtOnce(Rule):
    """Compute masks that are made of numbers alone: `x[~torch.eye(n).bool()]` → `x[concrete(lambda: ~jnp.eye(n).astype(bool))]`.

    Values that are known while tracing may decide shapes. The local names that such a mask is made of are computed
    at once as well. Declines where anything in it comes from an array.
    """

    KEEP = ("def f(x, mask):\n    kept = ~mask\n    return x[kept]\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    n = x.shape[0]\n    return x[~torch.eye(n, dtype=torch.bool)].view(n, -1)\n",
            "def f(x: jax.Array):\n    n = x.shape[0]\n    return x[concrete(lambda: ~jnp.eye(n, dtype=bool))].reshape(n, -1)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    n = x.shape[0]\n    mask = torch.ones((n, n), dtype=torch.bool)\n"
            "    mask.fill_diagonal_(0)\n    mask[0, 1] = False\n    return x[mask]\n",
            "def f(x: jax.Array):\n    n = x.shape[0]\n    mask = concrete(lambda: jnp.ones((n, n), dtype=bool))\n"
            "    mask = concrete(lambda: jnp.fill_diagonal(mask, 0, inplace=False))\n    mask = concrete(lambda: mask.at[0, 1].set(False))\n"
            "    return x[mask]\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    n = x.shape[0]\n    near = torch.ones(n, n)\n    near -= torch.eye(n)\n"
            "    return x[near.nonzero()[:, 0]]\n",
            "def f(x: jax.Array):\n    n = x.shape[0]\n    near = concrete(lambda: jnp.ones((n, n)))\n"
            "    near = concrete(lambda: near - jnp.eye(n))\n    return x[concrete(lambda: jnp.argwhere(near))[:, 0]]\n",
        ),
    )

    def leave_Index(self, original: cst.Index, updated: cst.Index) -> cst.Index | None:
        masks = known_selections(self.context)
        if self.context.span(original.value) not in masks.indices or _is_plain(updated.value):
            return None
        statements = [node for node in self.context.stack if isinstance(node, cst.Assign)]
        if statements and any(isinstance(t.target, cst.Name) and t.target.value in masks.names for t in statements[-1].targets):
            return None  # computed at once as a whole
        return updated.with_changes(value=self.context.build("vendored.concrete(lambda: {x})", x=updated.value))

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | None:
        names = known_selections(self.context).names
        body = [self._at_once(small, names) for small in updated.body] if names else list(updated.body)
        return updated.with_changes(body=body) if body != list(updated.body) else None

    def _at_once(self, small: cst.BaseSmallStatement, names: Set[str]) -> cst.BaseSmallStatement:
        if isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name) and small.target.value in names:
            operator = OPERATORS.get(type(small.operator))
            if operator is None:
                return small
            whole = cst.BinaryOperation(small.target.deep_clone(), operator(), self.context.parenthesise(small.value))
            value = self.context.build("vendored.concrete(lambda: {x})", x=whole)
            return cst.Assign([cst.AssignTarget(small.target)], value)
        if not isinstance(small, cst.Assign) or len(small.targets) > 1 or _is_plain(small.value):
            return small
        target = small.targets[0].target
        if not isinstance(target, cst.Name) or target.value not in names:
            return small
        return small.with_changes(value=self.context.build("vendored.concrete(lambda: {x})", x=small.value))


def known_selections(context: Context) -> Selections:
    """What known masks select in the function at hand; nothing where all values are there."""
    function = context.function
    if function is None or context.at_host:
        return NOTHING
    # Every subscript and statement asks, and the answer is the same throughout a function.
    cache: dict[int, Selections] = context.file.__dict__.setdefault("_selections", {})
    if id(function) not in cache:
        owner = context.cls.qualname if context.cls is not None else ""
        cache[id(function)] = selections(context.repo, context.file, context.facts, function, context.file.classes, owner)
    return cache[id(function)]


def _is_plain(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Name, cst.Integer, cst.Float))
