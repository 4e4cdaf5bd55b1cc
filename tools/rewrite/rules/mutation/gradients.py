"""What a call writes to a parameter keeps the parameter's gradient."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.parameter_loops import parameter_names
from migrate_agent.tools.rewrite.rules.parameters.variables import subscript, trained
from migrate_agent.tools.rewrite.rules.rule import Rule


class KeepParameterGradients(Rule):
    """Keep the gradient of a parameter that a call writes to: `self.w.copy_(v)` in `forward` → `self.w[...] = keep_gradient(v, self.w[...])`.

    `self.w.data = v` likewise, `p` of a loop over parameters and of a function that is handed one, and a parameter of a part
    (`self.conv.weight.data.clamp_(…)`). Torch writes without a gradient, and what is computed afterwards has its gradient with respect to the
    parameter all the same; in JAX that would be lost. Declines in constructors, and in what no call reaches.
    """

    KEEP = ("class Plain:\n    def f(self, v):\n        self.w[...] = v\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.ones(3))\n\n    def forward(self, x: torch.Tensor):\n        with torch.no_grad():\n"
            "            self.w.mul_(2)\n        return x * self.w\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.ones(3))\n\n"
            "    def __call__(self, x: jax.Array):\n        self.w[...] = keep_gradient(self.w[...] * 2, self.w[...])\n"
            "        return x * self.w[...]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.a = nn.Linear(d, d)\n        self.b = nn.Linear(d, d)\n\n    def forward(self, x: torch.Tensor):\n"
            "        for p, q in zip(self.a.parameters(), self.b.parameters()):\n            p.data = p.data * 0.9 + q.data * 0.1\n"
            "        return self.a(x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n"
            "        self.b = Linear(d, d, rngs=rngs)\n\n    def __call__(self, x: jax.Array):\n"
            "        for p, q in zip(parameters(self.a), parameters(self.b)):\n"
            "            p[...] = keep_gradient(lax.stop_gradient(p[...]) * 0.9 + lax.stop_gradient(q[...]) * 0.1, p[...])\n"
            "        return self.a(x)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.conv = nn.Conv2d(d, d, 3)\n\n    def forward(self, x: torch.Tensor):\n"
            "        self.conv.weight.data[:, :, 0].zero_()\n        return self.conv(x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.conv = Conv2d(d, d, 3, rngs=rngs)\n\n"
            '    def __call__(self, x: jax.Array):\n        overwrite(\n            self.conv,\n            "weight",\n            keep_gradient(\n'
            "                self.conv.weight.at[:, :, 0].set(\n"
            "                    jnp.zeros_like(lax.stop_gradient(self.conv.weight[...])[:, :, 0])\n                ),\n"
            "                self.conv.weight[...],\n            ),\n        )\n        return self.conv(x)\n",
        ),
    )

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | None:
        context = self.context
        key = context.function_key
        # A constructor is not differentiated, and what no call reaches cannot have a gradient.
        if key not in context.randomness.live or context.before_calls or context.function is None:
            return None
        handles = parameter_names(context.function, context.span(original).line) if context.file.names_torch else frozenset()
        handles |= context.randomness.written.get(key, frozenset())
        aligned = len(original.body) == len(updated.body)
        body = [
            self._keep_gradient(statement, handles, original.body[position] if aligned else None)
            for position, statement in enumerate(updated.body)
        ]
        return updated.with_changes(body=body) if any(new is not old for new, old in zip(body, updated.body, strict=True)) else None

    def _keep_gradient(
        self, statement: cst.BaseSmallStatement, handles: frozenset[str], source: cst.BaseSmallStatement | None
    ) -> cst.BaseSmallStatement:
        """The statement, its value with the gradient of the parameter that it is written to; `source` is what it was."""
        build = self.context.build
        match statement:
            # A write through a view of the parameter keeps its gradient already.
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value) if _keeps_gradient(value):
                return self._set_property(statement, target, value) if isinstance(target, cst.Attribute) else statement
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=attribute, slice=[only]) as target)]) if _is_whole(only):
                if self._is_parameter(attribute, handles) or self._writes_parameter(source):
                    return statement.with_changes(value=build("vendored.keep_gradient({v}, {w})", v=statement.value, w=target))
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)]) if self._writes_parameter(source):
                new_value = build("vendored.keep_gradient({v}, {w})", v=statement.value, w=subscript(target))
                return self._set_property(statement, target, new_value)
            case cst.Expr(value=cst.Call(func=function, args=[owner, key, value]) as call) if self._writes_parameter(source):
                if _last_name(function) == "overwrite" and (parameter := _attribute(owner.value, key.value)):
                    new_value = build("vendored.keep_gradient({v}, {w})", v=value.value, w=subscript(parameter))
                    return statement.with_changes(value=call.with_changes(args=[owner, key, value.with_changes(value=new_value)]))
        return statement

    def _set_property(self, statement: cst.Assign, target: cst.Attribute, value: cst.BaseExpression) -> cst.BaseSmallStatement:
        """`layer.weight = value`, a property, set during a call: an assignment would note the name in the layer's static structure."""
        key = cst.SimpleString(f'"{target.attr.value}"')
        call = self.context.build("vendored.overwrite({owner}, {key}, {value})", owner=target.value, key=key, value=value)
        return cst.Expr(call, semicolon=statement.semicolon)

    def _is_parameter(self, attribute: cst.BaseExpression, handles: frozenset[str]) -> bool:
        """Whether what is written to is a trained attribute of the module, what a loop over parameters gives, or what a function writes to."""
        if isinstance(attribute, cst.Attribute):
            return self.context.cls is not None and self.context.is_self(attribute.value) and trained(self, attribute.attr.value)
        return isinstance(attribute, cst.Name) and attribute.value in handles

    def _writes_parameter(self, source: cst.BaseSmallStatement | None) -> bool:
        """Whether a statement of the source writes to the memory of an attribute that was seen to be a parameter."""
        attribute = _written(source)
        fact = self.context.observed(attribute) if attribute is not None else None
        return fact is not None and set(fact.kinds) == {"parameter"}


def _last_name(node: cst.BaseExpression) -> str:
    name = node.attr if isinstance(node, cst.Attribute) else node
    return name.value if isinstance(name, cst.Name) else ""


def _keeps_gradient(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and _last_name(value.func) == "keep_gradient"


def _is_whole(element: cst.SubscriptElement) -> bool:
    return isinstance(element.slice, cst.Index) and isinstance(element.slice.value, cst.Ellipsis)


def _attribute(owner: cst.BaseExpression, key: cst.BaseExpression) -> cst.Attribute | None:
    """`owner.key`, where the key is a literal."""
    return cst.Attribute(owner, cst.Name(key.raw_value)) if isinstance(key, cst.SimpleString) else None


def _written(source: cst.BaseSmallStatement | None) -> cst.Attribute | None:
    """The attribute whose memory a statement writes to: `m.w` of `m.w[0] = 1`, `m.w.data = x`, `m.w.data[:, 1].zero_()`."""
    match source:
        # `m.w = x` binds the attribute to something else.
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() | cst.Attribute(attr=cst.Name(value="data")) as target)]):
            node: cst.BaseExpression = target
        case cst.AugAssign(target=target):
            node = target
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=name)))) if name.endswith("_"):
            node = receiver
        case _:
            return None
    while True:
        match node:
            case cst.Subscript(value=inner) | cst.Attribute(value=inner, attr=cst.Name(value="data" | "T" | "mT")):
                node = inner
            case cst.Call(func=cst.Attribute(value=inner)):
                node = inner
            case _:
                return node if isinstance(node, cst.Attribute) else None
