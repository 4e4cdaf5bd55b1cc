"""Small terms of sums: XLA adds the constants of a sum first, and in float32 a small one is lost in a large one."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule

SMALL = 1e-4
"""The share of the large constant below which float32 keeps three digits of the small one, or fewer."""

CONVENTIONAL = ("eps", "tiny")
"""What names say that stand for a number which keeps a logarithm or a quotient finite."""


class KeepSmallTerms(Rule):
    """Keep what a small constant is added to apart: `log(1 - p + 1e-8)` → `log(jax.lax.optimization_barrier(1 - p) + 1e-8)`.

    Under `jit` XLA makes `(1 + 1e-8) - p` of it, which is `1 - p` in float32: -inf where PyTorch gives -18. Sums that a name of the function
    stands for are looked at too. Declines where the sum has no large constant, and while a module is constructed.
    """

    KEEP = ("def f(share: float):\n    return 1 - share + 1e-8\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x / (x.sum() + 1e-8), 1 - x + 0.5, x - x.mean() + 1e-5\n",
            "def f(x: jax.Array):\n    return x / (jnp.sum(x) + 1e-8), 1 - x + 0.5, x - jnp.mean(x) + 1e-5\n",
        ),
        (
            "import torch\n\ndef f(p: torch.Tensor, eps=1e-8):\n    q = 1 - p\n    r = 1e-12 + (p - 1.0)\n    return 1 - p + 1e-8, q + eps, r, (1 - p**2) - eps\n",
            "def f(p: jax.Array, eps=1e-8):\n    q = 1 - p\n    r = 1e-12 + jax.lax.optimization_barrier(p - 1.0)\n"
            "    return jax.lax.optimization_barrier(1 - p) + 1e-8, jax.lax.optimization_barrier(q) + eps, r, "
            "jax.lax.optimization_barrier(1 - p**2) - eps\n",
        ),
    )

    def leave_BinaryOperation(self, original: cst.BinaryOperation, updated: cst.BinaryOperation) -> cst.BaseExpression | None:
        if not isinstance(original.operator, (cst.Add, cst.Subtract)) or self.context.constructing or self._is_host_sum(original):
            return None
        if self._is_lost(original.right, original.left):
            return updated.with_changes(left=self._apart(updated.left))
        if self._is_lost(original.left, original.right):
            return updated.with_changes(right=self._apart(updated.right))
        return None

    def _is_host_sum(self, node: cst.BinaryOperation) -> bool:
        """Whether nothing in the sum is known to be a tensor."""
        return not any(is_tensor(self.context.observed(side)) for side in (node, node.left, node.right))

    def _apart(self, node: cst.BaseExpression) -> cst.BaseExpression:
        return self.context.build("jax.lax.optimization_barrier({x})", x=node.with_changes(lpar=[], rpar=[]))

    def _is_lost(self, small: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Whether XLA would add the number `small` to a much larger one of the sum `other`."""
        terms = list(_terms(self._assigned(other)))
        constants = [abs(value) for term in terms if (value := self._number(term)) is not None]
        if not constants or len(constants) == len(terms):
            return False
        size = self._number(small)
        return abs(size) <= SMALL * max(constants) and size != 0 if size is not None else self._is_small_by_name(small)

    def _is_small_by_name(self, node: cst.BaseExpression) -> bool:
        name = node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""
        fact = self.context.observed(node)
        return any(part in name.lower() for part in CONVENTIONAL) and (fact is None or set(fact.kinds) == {"float"})

    def _assigned(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """What a name of the function stands for, where it is assigned once; the node itself otherwise."""
        function = self._function()
        if not isinstance(node, cst.Name) or function is None:
            return node
        bound = list(m.findall(function, m.AssignTarget(m.Name(node.value)) | m.AugAssign(m.Name(node.value))))
        values = [
            one.value for one in m.findall(function, m.Assign(targets=[m.AssignTarget(m.Name(node.value))])) if isinstance(one, cst.Assign)
        ]
        return values[0] if len(bound) == len(values) == 1 else node

    def _number(self, node: cst.BaseExpression) -> float | None:
        """The number that an expression stands for: a literal, or an argument whose default is one; None where it is not known."""
        match node:
            case cst.UnaryOperation(operator=cst.Minus(), expression=inside):
                value = self._number(inside)
                return None if value is None else -value
            case cst.Integer() | cst.Float():
                return float(node.evaluated_value)
            case cst.Name(value=name) if (function := self._function()) is not None:
                given = next(
                    (one.default for one in (*function.params.params, *function.params.kwonly_params) if one.name.value == name), None
                )
                return None if given is None or isinstance(given, cst.Name) else self._number(given)
        return None

    def _function(self) -> cst.FunctionDef | None:
        return next((node for node in reversed(self.context.stack) if isinstance(node, cst.FunctionDef)), None)


def _terms(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The terms of a sum."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node
