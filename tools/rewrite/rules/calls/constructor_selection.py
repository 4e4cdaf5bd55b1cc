"""What selects by value while a module is constructed, when the values are there."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.signatures import BindError, bind, parse_signature

SELECTING: Mapping[str, tuple[str, str]] = {
    "masked_select": ("input, mask", "vendored.masked_select({input}, {mask})"),
    "nonzero": ("input, *, as_tuple=False", "jnp.argwhere({input})"),
    "argwhere": ("input", "jnp.argwhere({input})"),
    "unique": ("input", "jnp.unique({input})"),
    "where": ("condition", "jnp.nonzero({condition})"),
    "bincount": ("input, weights=None, minlength=0", "jnp.bincount({input}, {weights}, minlength={minlength})"),
}
"""Function or method of torch, in the spellings that are covered → what NumPy calls it."""
AS_TUPLE = {"True": "jnp.nonzero({input})", "False": "jnp.argwhere({input})"}
"""What `nonzero` becomes by its option `as_tuple`."""


class SelectWhileConstructing(Rule):
    """Select by value in constructors: `x.masked_select(m)` → `masked_select(x, m)`, `torch.nonzero(x)` → `jnp.argwhere(x)`.

    Declines in calls, where the shape of the result would depend on values that are unknown while JAX
    traces, and for further options.
    """

    KEEP = ("import numpy as np\n\ndef f(x):\n    return np.nonzero(x)\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, mask: torch.Tensor):\n        super().__init__()\n"
            "        self.register_buffer('kept', torch.arange(4).masked_select(mask > 0))\n"
            "        self.register_buffer('rest', torch.nonzero(mask))\n"
            "        self.ones = torch.nonzero(torch.tensor(mask.shape) == 1, as_tuple=False)[:, 0].tolist()\n"
            "        self.rows, self.columns = mask.nonzero(as_tuple=True)\n",
            "class M(nnx.Module):\n    def __init__(self, mask: jax.Array, *, rngs: nnx.Rngs):\n"
            "        self.kept = nnx.Variable(masked_select(jnp.arange(4), mask > 0))\n        self.rest = nnx.Variable(jnp.argwhere(mask))\n"
            "        self.ones = jnp.argwhere(jnp.array(mask.shape) == 1)[:, 0].tolist()\n"
            "        self.rows, self.columns = jnp.nonzero(mask)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context, func = self.context, original.func
        if not context.constructing or not isinstance(func, cst.Attribute):
            return None
        name, of_torch = func.attr.value, context.dotted(func) == f"torch.{func.attr.value}"
        # The method `where` takes the other values too, and selects nothing.
        method = not context.dotted(func) and is_tensor(context.observed(func.value)) and name != "where"
        if name not in SELECTING or not (of_torch or method) or not isinstance(updated.func, cst.Attribute):
            return None
        signature, template = SELECTING[name]
        try:
            bound = bind(parse_signature(signature), updated.args, original.args, cst.Arg(updated.func.value) if method else None)
        except BindError:
            return None
        if (as_tuple := bound.values.get("as_tuple")) is not None:
            if not isinstance(as_tuple, cst.Name) or as_tuple.value not in AS_TUPLE:
                return None
            template = AS_TUPLE[as_tuple.value]
        defaults = {key: cst.parse_expression(text) for key, text in parse_signature(signature).defaults.items()}
        return context.parenthesise(context.build(template, **{**defaults, **bound.values}))
