"""Assertions that torch spells as calls, so that they can be traced."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

ASSERT = "torch._assert"
_STATEMENT = "_assert"


class WriteAsserts(Rule):
    """`torch._assert(condition, message)` → `assert condition, message`, which raises the same error.

    Declines for conditions that are not known to be Python's: what a tensor holds is asked of no traced array.
    Source: `torch/functional.py` of torch 2.13, `_assert`.
    """

    KEEP = ("def f(check, x):\n    check(x, 'no')\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor, n: int):\n    torch._assert(x.shape[0] == n, f'{n} rows are needed')\n    return x * 2\n",
            "def f(x: jax.Array, n: int):\n    assert x.shape[0] == n, f'{n} rows are needed'\n    return x * 2\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    torch._assert(condition=x.ndim == 2, message='a matrix')\n    return x\n",
            "def f(x: jax.Array):\n    assert x.ndim == 2, 'a matrix'\n    return x\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        """Before the tables, which have a hole for it."""
        if self.context.dotted(original.func) != ASSERT or not isinstance(self.context.parent(), cst.Expr):
            return None
        parts = _parts(original)
        fact = self.context.observed(parts[0].value) if parts else None
        return updated.with_changes(func=cst.Name(_STATEMENT)) if fact is not None and set(fact.kinds) == {"bool"} else None

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.Assert | None:
        call = updated.value
        if not isinstance(call, cst.Call) or not isinstance(original.value, cst.Call):
            return None
        if self.context.dotted(original.value.func) != ASSERT or not (isinstance(call.func, cst.Name) and call.func.value == _STATEMENT):
            return None
        parts = _parts(call)
        assert parts is not None  # as in `leave_Call`
        return cst.Assert(parts[0].value, parts[1].value)


def _parts(call: cst.Call) -> tuple[cst.Arg, cst.Arg] | None:
    """The condition and the message; `None` where they are handed over in another way."""
    named = {argument.keyword.value: argument for argument in call.args if argument.keyword is not None}
    plain = [argument for argument in call.args if argument.keyword is None and not argument.star]
    parts = dict(zip(("condition", "message"), plain, strict=False)) | named
    return (parts["condition"], parts["message"]) if set(parts) == {"condition", "message"} and len(call.args) == 2 else None
