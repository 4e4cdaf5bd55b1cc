"""Parameters that are chosen by the end of their names, and get new initial values."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import layers


class ChooseLayersByName(Rule):
    """In plain style, go through modules where a loop initialises the parameters of layers of one name, `if name.endswith("out.weight")`:

    `for path, module in nnx.iter_modules(self)`, `if path[-1:] == ("out",)`, `module.kernel[...] = …`. Declines unless all layers of that name are of
    one kind, no other name ends in it, and the values are alike in each layout.
    """

    KEEP = ("def f(rows):\n    for name, p in rows:\n        if name.endswith('out.weight'):\n            print(p)\n",)
    PLAIN = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, std):\n        super().__init__()\n"
            "        self.out = nn.Linear(d, 3)\n        for name, p in self.named_parameters():\n            if name.endswith('out.weight'):\n"
            "                nn.init.normal_(p, mean=0.0, std=std)\n\n    def forward(self, x):\n        return self.out(x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, std, *, rngs: nnx.Rngs):\n"
            "        self.out = nnx.Linear(d, 3, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs)\n"
            "        for path, module in nnx.iter_modules(self):\n            if path[-1:] == ('out',):\n"
            "                module.kernel[...] = std * jax.random.normal(rngs.params(), module.kernel.shape, module.kernel.dtype)\n\n"
            "    def __call__(self, x):\n        return self.out(x)\n",
        ),
    )

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.For | None:
        match original.target, original.iter, original.body.body, updated.iter, updated.body.body:
            case (
                cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), cst.Element(value=cst.Name(value=parameter))]),
                cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("named_parameters")), args=[]),
                [
                    cst.If(
                        test=cst.Call(
                            func=cst.Attribute(value=cst.Name(value=tested), attr=cst.Name("endswith")),
                            args=[cst.Arg(value=cst.SimpleString() as text)],
                        ),
                        orelse=None,
                    )
                ],
                cst.Call(args=[cst.Arg(value=walked)]),
                [cst.If() as chosen],
            ) if tested == name and self.context.is_module(owner):
                return self._through_modules(updated, walked, chosen, parameter, str(text.evaluated_value))
        return None

    def _through_modules(self, loop: cst.For, walked: cst.BaseExpression, chosen: cst.If, parameter: str, ending: str) -> cst.For | None:
        layer, _, leaf = ending.partition(".")
        variable = self._variable(layer, leaf)
        names = _Names(parameter)
        chosen.body.visit(names)
        if not variable or names.others or names.bound & {"path", "module"} or loop.orelse is not None:
            return None
        body = chosen.body.visit(_Replaced(parameter, cst.parse_expression(variable.replace("{self}", "module"))))
        test = self.context.build("path[-1:] == ({name},)", name=cst.SimpleString(repr(layer)))
        pair = cst.Tuple([cst.Element(cst.Name("path")), cst.Element(cst.Name("module"))], lpar=[], rpar=[])
        assert isinstance(body, cst.BaseSuite)
        inner = cst.IndentedBlock([chosen.with_changes(test=test, body=body, whitespace_before_test=cst.SimpleWhitespace(" "))])
        return loop.with_changes(target=pair, iter=self.context.build("nnx.iter_modules({module})", module=walked), body=inner)

    def _variable(self, layer: str, leaf: str) -> str:
        """Where a parameter of the layers of this name lies; "" where they are several kinds, or not Flax's own."""
        plain = self.context.plain
        kinds = plain.by_name.get(layer, frozenset())
        alike = [name for name in plain.by_name if name.endswith(layer) and name != layer]
        if not layer.isidentifier() or alike or len(kinds) != 1 or not kinds <= plain.kinds or layer in plain.shared:
            return ""
        return layers()[min(kinds)].params.get(leaf, "")


class _Names(cst.CSTVisitor):
    """What a block does with a parameter other than ask for its shape and dtype and set it whole, and the names that it reads."""

    def __init__(self, parameter: str) -> None:
        self.parameter = parameter
        self.others = 0
        self.bound: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.bound.add(node.value)
        self.others += node.value == self.parameter

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.others -= self._is_parameter(node.value) and node.attr.value in ("shape", "dtype")

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.others -= isinstance(node.target, cst.Subscript) and self._is_parameter(node.target.value)

    def _is_parameter(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value == self.parameter


class _Replaced(cst.CSTTransformer):
    def __init__(self, name: str, value: cst.BaseExpression) -> None:
        self.name, self.value = name, value

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.value if updated_node.value == self.name else updated_node
