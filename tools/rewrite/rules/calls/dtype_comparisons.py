"""Comparisons of dtypes with torch's names of dtypes."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import DTYPES
from migrate_agent.tools.rewrite.rules.rule import Rule

NAMES = frozenset(f"torch.{name}" for name in DTYPES)
WIDE_INTEGERS = frozenset({"torch.int64", "torch.long"})


class CompareDtypesByValue(Rule):
    """Compare dtypes by their values, since several objects of NumPy and JAX stand for one: `x.dtype is torch.float16` → `x.dtype == jnp.float16`. An array's is
    compared with JAX's own integers, `x.dtype == jnp.result_type(int)`: those have 32 bits unless x64 is enabled, and `int` always stands for 64.

    Declines where the other side is no name of a dtype, or holds others.
    """

    KEEP = (
        "def f(x, y):\n    return x.dtype == y.dtype, x is y\n",
        "import jax.numpy as jnp\n\ndef f(x):\n    return x.dtype is jnp.float32\n",
    )
    CHANGE = (
        (
            "import torch\n\ndef f(y: torch.Tensor, kind):\n    if y.dtype is torch.int64 and kind is not torch.float16:\n        return y + 1\n    return y\n",
            "def f(y: jax.Array, kind):\n    if y.dtype == jnp.result_type(int) and kind != jnp.float16:\n        return y + 1\n    return y\n",
        ),
        (
            "import torch\n\ndef f(y: torch.Tensor):\n    return y.dtype == torch.long, y.dtype != torch.bool, y.dtype in (torch.uint8, torch.long)\n",
            "def f(y: jax.Array):\n"
            "    return y.dtype == jnp.result_type(int), y.dtype != bool, y.dtype in (jnp.uint8, jnp.result_type(int))\n",
        ),
    )

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.BaseExpression | None:
        match original.comparisons, updated.comparisons:
            case [cst.ComparisonTarget(operator=operator, comparator=source)], [cst.ComparisonTarget(comparator=right) as target]:
                of_array = isinstance(original.left, cst.Attribute) and original.left.attr.value == "dtype"
                compared = self._sequence if isinstance(operator, cst.In | cst.NotIn) else self._dtype
                if (value := compared(source, right, of_array)) is not None:
                    return updated.with_changes(comparisons=[target.with_changes(operator=_by_value(operator), comparator=value)])
        return None

    def _dtype(self, source: cst.BaseExpression, right: cst.BaseExpression, of_array: bool) -> cst.BaseExpression | None:
        """What a dtype is compared with, where the source has one of torch's; else None."""
        dotted = self.context.dotted(source)
        if dotted not in NAMES:
            return None
        return self.context.build("jnp.result_type(int)") if of_array and dotted in WIDE_INTEGERS else right

    def _sequence(self, source: cst.BaseExpression, right: cst.BaseExpression, of_array: bool) -> cst.BaseExpression | None:
        """What a dtype is sought in, where the source has a sequence of torch's; else None."""
        if not isinstance(source, cst.Tuple | cst.List) or not isinstance(right, cst.Tuple | cst.List):
            return None
        elements = []
        for one, new in zip(source.elements, right.elements, strict=True):
            if (value := self._dtype(one.value, new.value, of_array)) is None:
                return None
            elements.append(new.with_changes(value=value))
        return right.with_changes(elements=elements)


def _by_value(operator: cst.BaseCompOp) -> cst.BaseCompOp:
    """The operator that compares values; one that does so as it is."""
    if isinstance(operator, cst.Is):
        return cst.Equal()
    return cst.NotEqual() if isinstance(operator, cst.IsNot) else operator
