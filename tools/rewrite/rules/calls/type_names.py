"""Comparisons of the names of tensors' types."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.ops.dtype import LEGACY_TYPES


class CompareDtypes(Rule):
    """Compare dtypes in place of the names of tensors' types: `x.type() == y.type()` → `x.dtype == y.dtype`, and with a name that is written out.

    Where tensors lie counts for nothing: `"torch.cuda.FloatTensor"` is `jnp.float32`. Declines in any other use of a name.
    """

    KEEP = ("def f(x, y):\n    return type(x) == type(y)\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    other = x.data.type() != y.type()\n    return x + y, other\n",
            "def f(x: jax.Array, y: jax.Array):\n    other = x.dtype != y.dtype\n    return x + y, other\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x.type() == 'torch.cuda.HalfTensor'\n",
            "def f(x: jax.Array):\n    return x.dtype == jnp.float16\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not self._is_name(original) or not self._is_compared() or not isinstance(updated.func, cst.Attribute):
            return None
        match updated.func.value:
            case cst.Call(args=[cst.Arg(value=inner)]) if _reads_data(original):  # a dtype has no gradient to stop
                return cst.Attribute(inner, cst.Name("dtype"))
        return cst.Attribute(updated.func.value, cst.Name("dtype"))

    def leave_SimpleString(self, original: cst.SimpleString, updated: cst.SimpleString) -> cst.BaseExpression | None:
        if _legacy(original) and self._is_compared():
            return self.context.build(LEGACY_TYPES[_legacy(original)])
        return None

    def _is_name(self, node: cst.BaseExpression) -> bool:
        """Whether this is `x.type()` of a tensor."""
        match node:
            case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name("type")), args=[]):
                return is_tensor(self.context.observed(tensor))
        return False

    def _is_compared(self) -> bool:
        """Whether the node is compared, and all that it is compared with are such names, one of them a tensor's."""
        parent = self.context.parent(2) if isinstance(self.context.parent(), cst.ComparisonTarget) else self.context.parent()
        if not isinstance(parent, cst.Comparison) or not all(
            isinstance(one.operator, cst.Equal | cst.NotEqual) for one in parent.comparisons
        ):
            return False
        sides = [parent.left, *(one.comparator for one in parent.comparisons)]
        return any(map(self._is_name, sides)) and all(self._is_name(side) or _legacy(side) for side in sides)


def _reads_data(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Attribute) and call.func.value.attr.value == "data"


def _legacy(node: cst.BaseExpression) -> str:
    """The name of a type of floats that is written out, without its place; else "". What integers are in JAX is up to its configuration."""
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else ""
    name = value.replace(".cuda", "") if isinstance(value, str) else ""
    return name if LEGACY_TYPES.get(name, "").startswith("jnp.float") else ""
