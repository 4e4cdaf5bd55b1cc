"""Sizes that travel as tensors: their values are known while tracing, and Python reads them."""

from __future__ import annotations

from collections.abc import Set

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.static_masks import READING_METHODS
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.indexing.known_masks import known_selections
from migrate_agent.tools.rewrite.rules.rule import Rule

PRODUCT = m.Call(
    func=m.Attribute(m.Name("jnp"), m.Name("prod")),
    args=[m.Arg(m.Call(func=m.Attribute(m.Name("jnp"), m.Name("array")), args=[m.Arg(keyword=None)]), keyword=None)],
)
"""`jnp.prod(jnp.array(shape))`."""


class ReadKnownNumbers(Rule):
    """Read what is made of sizes at once: `(torch.tensor(x.shape) // 2).tolist()` → `concrete(lambda: jnp.array(x.shape) // 2).tolist()`.

    The product of sizes is Python's. Declines where anything in it comes from the values of an array, and in constructors.
    """

    KEEP = ("def f(sizes: list):\n    return [int(size) for size in sizes]\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x.view(-1, int(torch.prod(torch.tensor(x.shape[1:]))))\n",
            "def f(x: jax.Array):\n    return x.reshape(-1, math.prod(x.shape[1:]))\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    half = torch.tensor(x.shape[-2:]) // 2\n    h, w = half.tolist()\n    return x[:h, :w]\n",
            "def f(x: jax.Array):\n    half = concrete(lambda: jnp.array(x.shape[-2:]) // 2)\n    h, w = half.tolist()\n    return x[:h, :w]\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    sizes = torch.unique(torch.tensor([x.shape[0], y.shape[0]]))\n"
            "    rows = [x]\n    for size in sizes:\n        x = x * size\n        rows[:size] = []\n    return x\n",
            "def f(x: jax.Array, y: jax.Array):\n    sizes = concrete(lambda: unique(jnp.array([x.shape[0], y.shape[0]])))\n"
            "    rows = [x]\n    for size in sizes.tolist():\n        x = x * size\n        rows[:size] = []\n    return x\n",
        ),
    )

    def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        call = self.context.parent()
        if not isinstance(call, cst.Call) or self.context.constructing or original.star or _is_method(call):
            return None
        known = known_selections(self.context)
        if self.context.span(original.value) not in known.numbers or self._computed_at_once(known.names):
            return None
        return updated.with_changes(value=self._at_once(updated.value))

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For | None:
        if self.context.constructing or self.context.span(original.iter) not in known_selections(self.context).numbers:
            return None
        return updated.with_changes(iter=self.context.build("{x}.tolist()", x=self._at_once(updated.iter)))

    def _computed_at_once(self, names: Set[str]) -> bool:
        """Whether the statement at hand is computed at once as a whole."""
        assigned = [node for node in self.context.stack if isinstance(node, cst.Assign)]
        return bool(assigned) and any(isinstance(t.target, cst.Name) and t.target.value in names for t in assigned[-1].targets)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not reads_known_numbers(self.context, original):
            return None
        func = original.func
        if _is_method(original) and isinstance(func, cst.Attribute) and isinstance(updated.func, cst.Attribute):
            value = self._at_once(updated.func.value)
            return value if _is_prod(value) else updated.with_changes(func=updated.func.with_changes(value=value))
        whole = isinstance(func, cst.Name) and func.value == "int" and len(updated.args) == 1 and _is_prod(updated.args[0].value)
        return updated.args[0].value if whole else None

    def _at_once(self, node: cst.BaseExpression) -> cst.BaseExpression:
        product = _product(node)
        if product is not None:
            return self.context.build("math.prod({shape})", shape=product)
        if isinstance(node, (cst.Name, cst.Integer, cst.Float)):
            return node
        return self.context.build("vendored.concrete(lambda: {x})", x=node)


def reads_known_numbers(context: Context, call: cst.Call) -> bool:
    """Whether Python asks in an original call for nothing but values that are known while tracing."""
    if context.constructing:
        return False
    numbers = known_selections(context).numbers
    func = call.func
    if isinstance(func, cst.Attribute) and context.span(func.value) in numbers:
        return True
    return any(context.span(argument.value) in numbers for argument in call.args)


def _is_method(call: cst.Call) -> bool:
    """Whether a call is `x.item()` or `x.tolist()`."""
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in READING_METHODS and not call.args


def _is_prod(node: cst.BaseExpression) -> bool:
    return m.matches(node, m.Call(func=m.Attribute(m.Name("math"), m.Name("prod"))))


def _product(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The sizes of which an expression is the product, or `None`."""
    if not m.matches(node, PRODUCT):
        return None
    return cst.ensure_type(cst.ensure_type(node, cst.Call).args[0].value, cst.Call).args[0].value
