"""The layers of a sequence, which Flax keeps in a list."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.plain_layers.uses import GOES_THROUGH, SEQUENTIAL
from migrate_agent.tools.rewrite.rules.rule import Rule


class OpenSequences(Rule):
    """In plain style, reach into a sequence by its list of layers: `self.net[-1]` → `self.net.layers[-1]`, `for part in self.net` → `in self.net.layers`.

    Declines where the sequence is torch's own class of helpers, which is indexed itself (`analysis/plain_layers/uses.py`).
    """

    KEEP = ("def f(net, x):\n    for part in net:\n        x = part(x)\n    return net[0](x)\n",)
    PLAIN = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.net = nn.Sequential(nn.ReLU(), nn.Tanh())\n\n    def forward(self, x):\n        for part in self.net:\n"
            "            x = part(x)\n        return self.net[0](x) + len(self.net)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.net = nnx.Sequential(jax.nn.relu, jnp.tanh)\n\n"
            "    def __call__(self, x):\n        for part in self.net.layers:\n            x = part(x)\n"
            "        return self.net.layers[0](x) + len(self.net.layers)\n",
        ),
    )

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.Subscript | None:
        return updated.with_changes(value=_layers(updated.value)) if is_sequence(self, original.value) else None

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For | None:
        return updated.with_changes(iter=_layers(updated.iter)) if is_sequence(self, original.iter) else None

    def leave_CompFor(self, original: cst.CompFor, updated: cst.CompFor) -> cst.CompFor | None:
        return updated.with_changes(iter=_layers(updated.iter)) if is_sequence(self, original.iter) else None

    def leave_StarredElement(self, original: cst.StarredElement, updated: cst.StarredElement) -> cst.StarredElement | None:
        return updated.with_changes(value=_layers(updated.value)) if is_sequence(self, original.value) else None

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        through = isinstance(original.func, cst.Name) and original.func.value in GOES_THROUGH
        opened = [(through or old.star == "*") and is_sequence(self, old.value) for old in original.args]
        if not any(opened) or len(updated.args) != len(original.args):
            return None
        pairs = zip(updated.args, opened, strict=True)
        return updated.with_changes(args=[new.with_changes(value=_layers(new.value)) if is_open else new for new, is_open in pairs])


def is_sequence(rule: Rule, node: cst.BaseExpression) -> bool:
    """Whether an expression of the source is a sequence that is Flax's own in the mirror."""
    plain = rule.context.plain
    if SEQUENTIAL not in plain.kinds or not isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)):
        return False
    fact = rule.context.observed(node)
    name = node.attr.value if isinstance(node, cst.Attribute) else ""
    kinds = {kind.removeprefix("module:") for kind in fact.kinds} if fact else plain.by_name.get(name, frozenset())
    return kinds == {SEQUENTIAL}


def in_mirror(rule: Rule, node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression of names, attributes and indices as the mirror has it: `self.net[-1]` → `self.net.layers[-1]`."""
    if isinstance(node, cst.Attribute):
        return node.with_changes(value=in_mirror(rule, node.value))
    if isinstance(node, cst.Subscript):
        value = in_mirror(rule, node.value)
        return node.with_changes(value=_layers(value) if is_sequence(rule, node.value) else value)
    return node


def _layers(node: cst.BaseExpression) -> cst.Attribute:
    return cst.Attribute(node, cst.Name("layers"))
