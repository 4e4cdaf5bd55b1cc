"""What selects by value where the values are there: while a module is constructed, and in what is made of numbers alone."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.indexing.known_masks import known_selections
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

    In calls, places in what is made of numbers alone are computed while JAX traces. Declines there for all else, whose
    shape would depend on values that are unknown then, and for further options.
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
        (
            "import torch\n\ndef f(n: int):\n    ones = torch.ones(n, n)\n    above = (ones.triu() - torch.eye(n)).nonzero().t()\n"
            "    return above[0] * n + above[1]\n",
            "def f(n: int):\n    ones = concrete(lambda: jnp.ones((n, n)))\n"
            "    above = concrete(lambda: jnp.argwhere(jnp.triu(ones) - jnp.eye(n))).T\n    return above[0] * n + above[1]\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    rows, columns = torch.where(torch.eye(x.shape[0]) > 0)\n    return x[rows, columns]\n",
            "def f(x: jax.Array):\n    rows, columns = concrete(lambda: jnp.nonzero(jnp.eye(x.shape[0]) > 0))\n    return x[rows, columns]\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context, func = self.context, original.func
        if not isinstance(func, cst.Attribute) or not (context.constructing or self._known_places(original, func)):
            return None
        name, of_torch = func.attr.value, context.dotted(func) == f"torch.{func.attr.value}"
        # The method `where` takes the other values too, and selects nothing.
        method = not context.dotted(func) and is_tensor(context.observed(func.value)) and name != "where"
        if name not in SELECTING or not (of_torch or method) or not isinstance(updated.func, cst.Attribute):
            return None
        signature, template = SELECTING[name]
        try:
            bound = bind(parse_signature(signature), updated.args, original.args, cst.Arg(_bare(updated.func.value)) if method else None)
        except BindError:
            return None
        if (as_tuple := bound.values.get("as_tuple")) is not None:
            if not isinstance(as_tuple, cst.Name) or as_tuple.value not in AS_TUPLE:
                return None
            template = AS_TUPLE[as_tuple.value]
        defaults = {key: cst.parse_expression(text) for key, text in parse_signature(signature).defaults.items()}
        template = template if context.constructing else f"vendored.concrete(lambda: {template})"
        return context.parenthesise(context.build(template, **{**defaults, **bound.values}))

    def _known_places(self, call: cst.Call, func: cst.Attribute) -> bool:
        """Whether a call asks for the places in a tensor that is made of numbers alone."""
        selecting = known_selections(self.context).selecting
        return any(self.context.span(node) in selecting for node in (func.value, *(argument.value for argument in call.args[:1])))


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression as an argument, which needs no parentheses of its own; a tuple without them would be several arguments."""
    return node if isinstance(node, (cst.Tuple, cst.GeneratorExp)) else node.with_changes(lpar=[], rpar=[])
