"""Parameters that are taken out of a module, and computed from others before each call: hand-written weight and spectral normalisation."""

from __future__ import annotations

import ast

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk


class ComputeRemovedParameters(Rule):
    """Compute what was a parameter: `del m._parameters[name]` → `remove_parameter(m, name)`, `setattr(m, name, w / s)` → `set_computed(m, name, w / s)`.

    `del m.weight`, `delattr(m, name)` and `m.weight = w / s` likewise. Declines where the class does not both
    remove and set, or where what it sets is not an array.
    """

    KEEP = ("class Plain:\n    def f(self, name):\n        del self.m._parameters[name]\n        setattr(self.m, name, 3)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass Scaled(nn.Module):\n    def __init__(self, name='weight'):\n        super().__init__()\n"
            "        self.m = nn.Linear(3, 3)\n        self.name = name\n        self.raw = nn.Parameter(self.m.weight.data)\n"
            "        del self.m._parameters[self.name]\n\n    def forward(self, x):\n"
            "        setattr(self.m, self.name, self.raw * 2)\n        return self.m(x)\n",
            "class Scaled(nnx.Module):\n    def __init__(self, name='weight', *, rngs: nnx.Rngs):\n        self.m = Linear(3, 3, rngs=rngs)\n"
            "        self.name = name\n        self.raw = nnx.Param(self.m.weight[...])\n        remove_parameter(self.m, self.name)\n\n"
            "    def __call__(self, x):\n        set_computed(self.m, self.name, self.raw[...] * 2)\n        return self.m(x)\n",
        ),
        (
            "from torch import nn\n\nclass Halved(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.m = nn.Linear(3, 3)\n        self.raw = nn.Parameter(self.m.weight.data)\n        del self.m.weight\n\n"
            "    def forward(self, x):\n        self.m.weight = self.raw / 2\n        return self.m(x)\n",
            "class Halved(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.m = Linear(3, 3, rngs=rngs)\n"
            "        self.raw = nnx.Param(self.m.weight[...])\n        remove_parameter(self.m, 'weight')\n\n"
            "    def __call__(self, x):\n        set_computed(self.m, 'weight', self.raw[...] / 2)\n        return self.m(x)\n",
        ),
    )

    def leave_Del(self, original: cst.Del, updated: cst.Del) -> cst.BaseSmallStatement | None:
        match original.target, updated.target:
            case (
                cst.Subscript(value=cst.Attribute(value=owner, attr=cst.Name(value="_parameters"))),
                cst.Subscript(value=cst.Attribute(value=new), slice=[cst.SubscriptElement(slice=cst.Index(value=name))]),
            ):
                pass
            case cst.Attribute(value=owner, attr=cst.Name(value=text)), cst.Attribute(value=new):
                name = cst.SimpleString(repr(text))
            case _:
                return None
        return self._removal(owner, new, name)

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """`getattr(m, name)` in the function that then takes this parameter out: its value in PyTorch's layout, whatever NNX calls it."""
        match original, updated:
            case (
                cst.Call(func=cst.Name(value="getattr"), args=[cst.Arg(value=owner), cst.Arg(value=asked)]),
                cst.Call(args=[cst.Arg(value=new), cst.Arg(value=name)]),
            ) if self._is_module(owner) and computes_removed(self.context, owner) and self._removes_here(owner, asked):
                return self.context.build("vendored.parameter_value({module}, {name})", module=new, name=name)
        return None

    def _removes_here(self, owner: cst.BaseExpression, name: cst.BaseExpression) -> bool:
        """Whether the function at hand has `del owner._parameters[name]`."""
        function = self.context.functions[-1] if self.context.functions else None
        text = f"del {_code(owner)}._parameters[{_code(name)}]"
        return function is not None and any(_code(line).strip() == text for line in m.findall(function, m.Del()))

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.BaseSmallStatement | None:
        match original.value, updated.value:
            case cst.Call(func=cst.Name(value="delattr"), args=[owner, _]), cst.Call(args=[new, name]):
                return self._removal(owner.value, new.value, name.value)
            case cst.Call(func=cst.Name(value="setattr"), args=[owner, _, value]), cst.Call(args=[new, name, computed]):
                return self._setting(owner.value, value.value, new.value, name.value, computed.value)
        return None

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        match original.targets, updated.targets:
            case (
                [cst.AssignTarget(target=cst.Attribute(value=owner, attr=cst.Name(value=text)))],
                [cst.AssignTarget(target=cst.Attribute(value=new))],
            ) if text != "data":
                return self._setting(owner, original.value, new, cst.SimpleString(repr(text)), updated.value)
        return None

    def _removal(self, owner: cst.BaseExpression, new: cst.BaseExpression, name: cst.BaseExpression) -> cst.BaseSmallStatement | None:
        if not self._is_module(owner) or not computes_removed(self.context, owner):
            return None
        return cst.Expr(self.context.build("vendored.remove_parameter({module}, {name})", module=new, name=name))

    def _setting(
        self,
        owner: cst.BaseExpression,
        value: cst.BaseExpression,
        new: cst.BaseExpression,
        name: cst.BaseExpression,
        computed: cst.BaseExpression,
    ) -> cst.BaseSmallStatement | None:
        fact = self.context.observed(value)
        # Dropout that does nothing hands back the parameter itself.
        values = set(fact.kinds) if fact is not None else set()
        if (
            "tensor" not in values
            or not values <= {"tensor", "parameter"}
            or not self._is_module(owner)
            or not computes_removed(self.context, owner)
        ):
            return None
        call = self.context.build("vendored.set_computed({module}, {name}, {value})", module=new, name=name, value=computed)
        return cst.Expr(call)

    def _is_module(self, node: cst.BaseExpression) -> bool:
        """Whether this is a module other than the one at hand, whose own attributes the class declares."""
        fact = self.context.observed(node)
        return not self.context.is_self(node) and bool(fact and fact.kinds) and all(kind.startswith("module:") for kind in fact.kinds)  # type: ignore[union-attr]


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def computes_removed(context: Context, owner: cst.BaseExpression) -> bool:
    """Whether the class at hand takes parameters out of the module that is spelled so, and sets attributes of it."""
    text, model = cst.Module([]).code_for_node(owner), context.cls
    nodes = list(walk(model.node)) if model is not None else []
    return any(_is_removal(node, text) for node in nodes) and any(_is_setting(node, text) for node in nodes)


def _is_removal(node: ast.AST, owner: str) -> bool:
    match node:
        case ast.Delete(targets=[ast.Subscript(value=ast.Attribute(value=module, attr="_parameters"))]):
            return ast.unparse(module) == owner
        case ast.Delete(targets=[ast.Attribute(value=module)]) | ast.Call(func=ast.Name(id="delattr"), args=[module, _]):
            return ast.unparse(module) == owner
    return False


def _is_setting(node: ast.AST, owner: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[module, _, _]) | ast.Assign(targets=[ast.Attribute(value=module)]):
            return ast.unparse(module) == owner
    return False
