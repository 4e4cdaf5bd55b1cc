"""Modules that take the place of others inside a model: adapters around its layers, say."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.apply_tables import tidy
from migrate_agent.tools.rewrite.rules.parameters.registration import layer_bases
from migrate_agent.tools.rewrite.rules.rule import Rule


class ReplaceChildren(Rule):
    """Replace parts of containers by name: `setattr(parent, name, Adapter(part))` → `set_child(parent, name, Adapter(part))`.

    An `nn.Sequential` is among the `parent`s that were seen: torch finds its parts under `"0"`, `"1"`, …, and NNX in a list.
    """

    KEEP = ("class Plain:\n    def f(self, parent, name, x):\n        setattr(parent, name, x)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.net, self.one = nn.Sequential(nn.Linear(d, d), nn.ReLU()), nn.Linear(d, d)\n"
            "        for name in ('0',):\n            setattr(self.net, name, nn.Linear(d, d))\n            setattr(self, name, nn.Linear(d, d))\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.net, self.one = Sequential(Linear(d, d, rngs=rngs), jax.nn.relu), Linear(d, d, rngs=rngs)\n"
            "        for name in ('0',):\n            set_child(self.net, name, Linear(d, d, rngs=rngs))\n"
            "            setattr(self, name, Linear(d, d, rngs=rngs))\n",
        ),
    )

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.Expr | None:
        match original.value, updated.value:
            case cst.Call(func=cst.Name("setattr"), args=[owner, _, value]), cst.Call(args=[_, _, _] as arguments):
                fact = self.context.observed(value.value)
                is_module = fact is not None and bool(fact.kinds) and all(kind.startswith("module:") for kind in fact.kinds)
                if is_module and "setattr" not in self.context.taken and "torch.nn.Sequential" in layer_bases(self, owner.value):
                    return cst.Expr(cst.Call(self.context.helper("set_child"), tidy([cst.Arg(one.value) for one in arguments])))
        return None
