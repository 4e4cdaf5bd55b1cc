"""Ranges of whole numbers that are lists at once: they are static, and stay Python's own."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.apply_tables import tidy
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.ops.calls import INTEGERS


class KeepRangesStatic(Rule):
    """Keep numbers of a range in Python: `torch.arange(1, n).tolist()` → `list(range(1, n))`.

    Declines where the numbers were seen to be floats, and for keyword arguments.
    """

    KEEP = ("def f(n):\n    return list(range(n))\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return torch.arange(1, x.dim()).tolist()\n",
            "def f(x: jax.Array):\n    return list(range(1, x.ndim))\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        func, new = original.func, updated.func
        if not isinstance(func, cst.Attribute) or not isinstance(new, cst.Attribute) or func.attr.value != "tolist" or original.args:
            return None
        arange, inner = func.value, new.value
        if not isinstance(arange, cst.Call) or not isinstance(inner, cst.Call) or self.context.dotted(arange.func) != "torch.arange":
            return None
        fact = self.context.observed(arange)
        if not 1 <= len(inner.args) <= 3 or any(argument.keyword or argument.star for argument in (*inner.args, *arange.args)):
            return None
        # `torch.arange(0, 1, 0.1)` has floats in it, which `range` does not take.
        if fact is not None and fact.dtypes and not set(fact.dtypes) <= INTEGERS:
            return None
        return cst.Call(cst.Name("list"), [cst.Arg(cst.Call(cst.Name("range"), tidy(inner.args)))])
