"""Limits of a dtype that the code names: numbers of Python."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule

LIMITS = frozenset({"eps", "max", "min", "tiny", "smallest_normal", "resolution"})


class KeepLimitsAsNumbers(Rule):
    """Make numbers of Python of the limits of a named dtype: `torch.finfo(torch.float32).eps` → `float(jnp.finfo(jnp.float32).eps)`.

    Torch gives a `float`, NumPy a number with a dtype: beside an array of bfloat16 that would make float32 of it. Declines where the dtype is that of a
    tensor (`torch.finfo(x.dtype).max`): its limits have the dtype of the tensor.
    """

    KEEP = ("def f(x, info):\n    return x + info.eps\n",)
    CHANGE = (
        (
            "import torch\n\nEPS = torch.finfo(torch.float).eps\n\ndef f(x: torch.Tensor):\n    return x * EPS - torch.finfo(x.dtype).tiny\n",
            "EPS = float(jnp.finfo(jnp.float32).eps)\n\ndef f(x: jax.Array):\n    return x * EPS - jnp.finfo(x.dtype).tiny\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        call = original.value
        if original.attr.value not in LIMITS or not isinstance(call, cst.Call) or self.context.dotted(call.func) != "torch.finfo":
            return None
        is_named = all(self.context.dotted(argument.value).startswith("torch.") for argument in call.args)
        return cst.Call(cst.Name("float"), [cst.Arg(updated)]) if is_named else None
