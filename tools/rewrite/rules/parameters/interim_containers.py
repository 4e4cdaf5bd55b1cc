"""Plain lists of which a constructor makes a container of modules, under their name or another one."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule


class BuildContainersInLocals(Rule):
    """Fill a list before it becomes a container: `self.xs = []`, …, `self.xs = nn.ModuleList(self.xs)` → `xs = []`, …, `self.xs = nnx.List(xs)`.

    NNX fixes at the first assignment whether an attribute is data; a plain list is not. So it is where the container has another name, which
    methods then read: `self.xs = []`, …, `self.net = nn.ModuleList(self.xs)`, `for x in self.xs` → `for x in self.net`.
    Declines where a method reads the list in between, and where other code may see the attribute.
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
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.layers = []\n"
            "        for i in range(3):\n            self.layers.append(nn.Linear(d, d))\n        self.net = nn.ModuleList(self.layers)\n"
            "        heads = [nn.Linear(d, d)]\n        self.heads = heads\n        self.head = nn.Sequential(*heads)\n\n"
            "    def forward(self, x):\n        for layer in self.layers:\n            x = layer(x)\n        return self.head(x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        layers = []\n"
            "        for i in range(3):\n            layers.append(Linear(d, d, rngs=rngs))\n        self.net = nnx.List(layers)\n"
            "        heads = [Linear(d, d, rngs=rngs)]\n        self.head = Sequential(*heads)\n\n"
            "    def __call__(self, x):\n        for layer in self.net:\n            x = layer(x)\n        return self.head(x)\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        if not context.is_self(original.value):
            return None
        if registered := context.class_facts.registered_reads.get(context.span(original)):
            return updated.with_changes(attr=cst.Name(registered))
        local = context.class_facts.interim_containers.get(context.span(original)) if context.path[-1:] == ["__init__"] else None
        return cst.Name(local) if local else None
