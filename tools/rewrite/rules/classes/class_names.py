"""Tests of what a layer's class is called."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.plain_layers.class_names import name_test, owner_in
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import layers


class AskForClasses(Rule):
    """In plain style, ask for a class, where the source asks for its name: `m.__class__.__name__.find("Conv") != -1` → `isinstance(m, nnx.Conv)`.

    Flax's classes have other names. Declines where a class of the repository has such a name, and where no layer of Flax's own is meant.
    """

    KEEP = ("def f(m):\n    return 'Conv' in type(m).__name__\n",)
    PLAIN = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.a, self.b = nn.Conv2d(d, d, 1), nn.Linear(d, d)\n        self.apply(begin)\n\n\ndef begin(m):\n"
            "    name = m.__class__.__name__\n    if name.find('Conv') != -1 or name == 'Linear':\n        nn.init.ones_(m.bias)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.a, self.b = (\n            ChannelsFirstConv(d, d, (1, 1), kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs),\n"
            "            nnx.Linear(d, d, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs),\n        )\n"
            "        for _, module in nnx.iter_modules(self):\n            begin(module, rngs=rngs)\n\n\ndef begin(m, *, rngs: nnx.Rngs):\n"
            "    if isinstance(m, nnx.Conv) or isinstance(m, nnx.Linear):\n        m.bias[...] = jnp.ones_like(m.bias)\n",
        ),
    )

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.BaseExpression | None:
        plain = self.context.plain
        test = name_test(ast.parse(f"({cst.Module([]).code_for_node(original)}\n)", mode="eval").body)
        if test is None or not plain.mentioned:
            return None
        owner, kinds = owner_in(test, self.context.function), test.layers(plain.mentioned, plain.own_classes, self.context.function)
        # A helper has the name that torch's layer has.
        if not isinstance(owner, ast.Name) or not kinds & plain.kinds:
            return None
        classes = list(dict.fromkeys(map(self._class, sorted(kinds))))
        asked = classes[0] if len(classes) == 1 else f"({', '.join(classes)})"
        return self.context.build(f"isinstance({owner.id}, {asked})")

    def _class(self, kind: str) -> str:
        row, plain = layers()[kind], kind in self.context.plain.kinds
        return row.plain_class if plain and row.plain_class else f"vendored.{row.vendored}"
