"""Plain lists under the name of the container that is made of them."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class BuildContainersInLocals(Rule):
    """Fill a list before it becomes a container: `self.xs = []`, …, `self.xs = nn.ModuleList(self.xs)` → `xs = []`, …, `self.xs = nnx.List(xs)`.

    NNX fixes at the first assignment whether an attribute is data; a plain list is not.
    Declines where a method reads the list in between.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.x = []\n        self.x.append(x)\n        self.x = tuple(self.x)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.layers = []\n"
            "        for i in range(3):\n            self.layers.append(nn.Linear(d, d))\n        self.layers = nn.Sequential(*self.layers)\n\n"
            "    def forward(self, x):\n        return self.layers(x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        layers = []\n"
            "        for i in range(3):\n            layers.append(Linear(d, d, rngs=rngs))\n        self.layers = Sequential(*layers)\n\n"
            "    def __call__(self, x):\n        return self.layers(x)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, bias):\n        super().__init__()\n        if bias:\n"
            "            self.xs = [nn.Linear(d, d) for _ in range(2)]\n        else:\n            self.xs = [nn.Linear(d, d, bias=False)]\n"
            "            self.xs = [nn.Sequential(x) for x in self.xs]\n        self.xs = nn.ModuleList(self.xs)\n",
            "class M(nnx.Module):\n    def __init__(self, d, bias, *, rngs: nnx.Rngs):\n        if bias:\n"
            "            xs = [Linear(d, d, rngs=rngs) for _ in range(2)]\n        else:\n            xs = [Linear(d, d, bias=False, rngs=rngs)]\n"
            "            xs = [Sequential(x) for x in xs]\n        self.xs = nnx.List(xs)\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        if context.path[-1:] != ["__init__"] or not context.is_self(original.value):
            return None
        local = context.class_facts.interim_containers.get(context.span(original))
        return cst.Name(local) if local else None
