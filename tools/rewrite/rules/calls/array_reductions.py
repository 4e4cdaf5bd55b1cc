"""Python's own `any` and `all` of a tensor, which ask for the truth of each of its elements: an array has none while it is traced."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule

REDUCTIONS = frozenset({"any", "all"})


class ReduceArrays(Rule):
    """Reduce tensors as arrays: Python's `any(t)` → `jnp.any(t)`, `all(t)` → `jnp.all(t)`.

    `t` has one axis, or torch raises. Declines where it is no tensor: `any(t > 0 for t in parts)`, `all(flags)`.
    """

    KEEP = ("def f(flags: list):\n    return any(flags) or all(flag for flag in flags)\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    if any(x > 0):\n        x = x * 2\n    return x\n",
            "def f(x: jax.Array):\n    def if_true(x):\n        x = x * 2\n        return x\n\n    def if_false(x):\n        return x\n\n"
            "    x = lax.cond(jnp.any(x > 0), if_true, if_false, x)\n    return x\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not is_reduced(self.context, original):
            return None
        name = cst.ensure_type(original.func, cst.Name).value
        return self.context.build(f"jnp.{name}({{x}})", x=updated.args[0].value)


def is_reduced(context: Context, node: cst.BaseExpression) -> bool:
    """Whether an original expression is Python's own `any` or `all` of a tensor."""
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in REDUCTIONS):
        return False
    # The file may define an `any` of its own.
    if node.func.value in context.taken or len(node.args) != 1 or node.args[0].star:
        return False
    return is_tensor(context.observed(node.args[0].value))
