"""Buffers, parameters and modules that a call registers, under names that are written or computed."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.containers.contents import adds_later
from migrate_agent.tools.rewrite.rules.apply_tables import tidy
from migrate_agent.tools.rewrite.rules.parameters.late_attributes import REGISTERING, holds_data
from migrate_agent.tools.rewrite.rules.parameters.variables import own_layer
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

ARGUMENTS = {"tensor": "value", "param": "value", "module": "value"}


class ReplaceRegistrations(Rule):
    """Replace registrations by assignments: `self.register_buffer("m", x)` → `self.m = nnx.Variable(x)`.

    Not persistent → `nnx.Cache(x)`; under a computed name → `setattr`; `add_module` of a container makes an
    entry. Declines (a hole) where the arguments are not spelled out.
    """

    KEEP = ("class Plain:\n    def f(self):\n        self.register_buffer('x', 3)\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('m', torch.ones(3))\n\n    def forward(self, x):\n        return x + self.m\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.m = nnx.Variable(jnp.ones(3))\n\n"
            "    def __call__(self, x):\n        return x + self.m[...]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        for i in range(n):\n            self.register_buffer(f'm{i}', torch.ones(3), persistent=False)\n"
            "        self.register_buffer('k', torch.ones(n), persistent=n > 2)\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        for i in range(n):\n"
            "            setattr(self, f'm{i}', nnx.Cache(jnp.ones(3)))\n"
            "        self.k = (nnx.Variable if n > 2 else nnx.Cache)(jnp.ones(n))\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.register_buffer('m', torch.ones(d) if d else None)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.m = (nnx.Variable(jnp.ones(d)) if d else None)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, m):\n        super().__init__()\n"
            "        if m is not None:\n            m = m + 1\n        self.register_buffer('m', m)\n",
            "class M(nnx.Module):\n    def __init__(self, m, *, rngs: nnx.Rngs):\n        if m is not None:\n            m = m + 1\n"
            "        self.m = (nnx.Variable(m) if m is not None else None)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.ones(d))\n        self.register_parameter('w', self.w)\n"
            "        self.register_parameter('v', self.w)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.ones(d))\n"
            "        self.v = self.w\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.ms = []\n"
            "        for i in range(n):\n            m = torch.ones(3)\n            self.register_buffer(f'm{i}', m.data)\n            self.ms += [m]\n",
            "class M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.ms = nnx.data([])\n        for i in range(n):\n"
            "            m = jnp.ones(3)\n            m = nnx.Variable(m)\n            setattr(self, f'm{i}', m)\n            self.ms += [m]\n",
        ),
    )

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.BaseSmallStatement | cst.RemovalSentinel | None:
        if not isinstance(original.value, cst.Call) or not isinstance(updated.value, cst.Call):
            return None
        parts = self._registration(original.value, updated.value)
        if parts is None:
            return None
        owner, name, value = parts
        # Facts are known of the nodes of the source, and not of what they were rewritten to.
        registering = original.value.func.value if isinstance(original.value.func, cst.Attribute) else owner
        text = _literal_text(name)
        if text is not None and text.isidentifier() and self.context.is_self(owner) and not self._container_class(owner):
            # `self.register_parameter("w", self.w)` only says again what the assignment before has said.
            if value.deep_equals(cst.Attribute(owner, cst.Name(text))):
                return cst.RemoveFromParent()
            if _is_name(value, "None") and holds_data(self, original, text):
                value = self.context.build("nnx.data(None)")
            return cst.Assign([cst.AssignTarget(cst.Attribute(owner, cst.Name(text)))], value)
        if (
            text is not None
            and text.isidentifier()
            and isinstance(owner, (cst.Name, cst.Attribute))
            and not self._container_class(registering)
        ):
            return cst.Assign([cst.AssignTarget(cst.Attribute(owner, cst.Name(text)))], value)
        return self._shared(original.value, updated.value, parts) or cst.Expr(self._registering_call(original.value, *parts))

    def _shared(self, call: cst.Call, new: cst.Call, parts: tuple[cst.BaseExpression, ...]) -> cst.BaseSmallStatement | None:
        """The registration of a local tensor that the statements after it add to a container of the module: both hold one variable.

        `register_buffer(name, x)`, `self.xs.append(x)` → `x = nnx.Variable(x)`, `setattr(self, name, x)`, `self.xs.append(x)`.
        """
        context, source = self.context, self._source(call)
        while isinstance(source, (cst.Attribute, cst.Call)):  # `x.data`, `x.detach()`
            inner = source.func if isinstance(source, cst.Call) else source
            source = inner.value if isinstance(inner, cst.Attribute) and inner.attr.value in ("data", "detach") else None
        if not isinstance(source, cst.Name) or context.cls is None or context.function is None or not isinstance(call.func, cst.Attribute):
            return None
        if call.func.attr.value != "register_buffer" or not adds_later(
            context.cls, context.function, source.value, context.span(call).line
        ):
            return None
        variable = cst.Assign([cst.AssignTarget(source)], parts[2])
        registered = cst.Expr(self._registering_call(call, parts[0], parts[1], source))
        return cst.FlattenSentinel([variable, registered])  # type: ignore[return-value]

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """As an expression, such as the body of a lambda."""
        if isinstance(self.context.parent(), cst.Expr) or (parts := self._registration(original, updated)) is None:
            return None
        return self._registering_call(original, *parts)

    def _registration(self, call: cst.Call, new: cst.Call) -> tuple[cst.BaseExpression, cst.BaseExpression, cst.BaseExpression] | None:
        """Owner, name and the (wrapped) value that a call registers; `None` for any other call."""
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in REGISTERING or not isinstance(new.func, cst.Attribute):
            return None
        if not self.context.is_module(func.value):
            return None
        named = {a.keyword.value: a.value for a in new.args if a.keyword}
        positional = [a.value for a in new.args if not a.keyword and not a.star]
        values = dict(zip(("name", "value", "persistent"), positional, strict=False)) | {ARGUMENTS.get(k, k): v for k, v in named.items()}
        if "name" not in values or "value" not in values or any(a.star for a in new.args):
            self.context.hole(call, f"{func.attr.value} with arguments that are not spelled out", "unsupported")
            return None
        value = values["value"]
        if (
            func.attr.value == "register_parameter"
            and isinstance(value, cst.Subscript)
            and not isinstance(self._source(call), cst.Subscript)
        ):
            value = value.value  # the parameter itself, which another name may have too
        if func.attr.value == "register_buffer":
            value = self._buffer_value(value, self._buffer_class(values.get("persistent")))
            # Torch registers no buffer for `None`; a variable around `None` would be there, and not be `None`.
            if isinstance(values["value"], cst.Name) and self._is_tested_for_none(values["value"].value):
                value = self.context.build("({made} if {value} is not None else None)", made=value, value=values["value"])
        return new.func.value, values["name"], value

    def _source(self, call: cst.Call) -> cst.BaseExpression | None:
        """What a call registers, as it stood before rewriting."""
        named = [a.value for a in call.args if a.keyword and ARGUMENTS.get(a.keyword.value) == "value"]
        return next(iter([*named, *(a.value for a in call.args[1:2])]), None)

    def _is_tested_for_none(self, name: str) -> bool:
        """Whether the function does something only where this local name `is not None`: then it may be `None`, and there is no variable."""
        function = self.context.function
        branches = [node for node in walk(function) if isinstance(node, ast.If)] if function else []
        return any(ast.unparse(node.test) == f"{name} is not None" and not node.orelse for node in branches)

    def _buffer_class(self, persistent: cst.BaseExpression | None) -> cst.BaseExpression:
        """The class of a buffer's variable: of one that an argument decides about, that which the argument says."""
        if persistent is None or _is_name(persistent, "True") or _is_name(persistent, "False"):
            return self.context.build("nnx.Cache" if _is_name(persistent, "False") else "nnx.Variable")
        return self.context.build("(nnx.Variable if {persistent} else nnx.Cache)", persistent=persistent)

    def _buffer_value(self, value: cst.BaseExpression, kind: cst.BaseExpression) -> cst.BaseExpression:
        """The value in a variable; where it is `None`, for one of its conditions too, there is no variable."""
        if _is_name(value, "None"):
            return value
        if isinstance(value, cst.IfExp) and (_may_be_none(value.body) or _may_be_none(value.orelse)):
            whole = value.with_changes(body=self._buffer_value(value.body, kind), orelse=self._buffer_value(value.orelse, kind))
            return whole if whole.lpar else whole.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return self.context.build("{kind}({value})", kind=kind, value=value)

    def _registering_call(
        self, call: cst.Call, owner: cst.BaseExpression, name: cst.BaseExpression, value: cst.BaseExpression
    ) -> cst.BaseExpression:
        """An expression that registers."""
        assert isinstance(call.func, cst.Attribute)
        method = {"Sequential": "add_module", "ModuleDict": "__setitem__"}.get(self._container_class(call.func.value))
        if method and call.func.attr.value in ("add_module", "register_module"):
            return cst.Call(cst.Attribute(owner, cst.Name(method)), tidy([cst.Arg(name), cst.Arg(value)]))
        return cst.Call(cst.Name("setattr"), tidy([cst.Arg(owner), cst.Arg(name), cst.Arg(value)]))

    def _container_class(self, node: cst.BaseExpression) -> str:
        """`Sequential` or `ModuleDict` where the module derives from it, else ""."""
        bases = {name.removeprefix("torch.nn.") for name in layer_bases(self, node)}
        return next((name for name in ("Sequential", "ModuleDict") if name in bases), "")


class RegisterSequentialParts(Rule):
    """Register parts of a subclass of `nn.Sequential`: `self.conv = nn.Conv2d(…)` → `self.add_module("conv", …)`.

    It is one of the parts that are called in turn. Declines for values that are no modules.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.x = x\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Sequential):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.fc = nn.Linear(d, d)\n        self.d = d\n",
            "class M(Sequential):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        super().__init__()\n"
            '        self.add_module("fc", Linear(d, d, rngs=rngs))\n        self.d = d\n',
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        target, fact = original.targets[0].target, self.context.observed(original.value)
        if not (isinstance(target, cst.Attribute) and self.context.is_self(target.value) and len(original.targets) == 1):
            return None
        if "torch.nn.Sequential" not in own_layer(self) or fact is None or not all(kind.startswith("module:") for kind in fact.kinds):
            return None
        # The vendored `Sequential` calls the layers in its list: one that is only an attribute would be left out.
        name = cst.SimpleString(f'"{target.attr.value}"')
        return cst.Expr(cst.Call(cst.Attribute(target.value, cst.Name("add_module")), tidy([cst.Arg(name), cst.Arg(updated.value)])))


def _may_be_none(value: cst.BaseExpression) -> bool:
    """Whether this is `None`, or a conditional expression with `None` in an arm."""
    return _is_name(value, "None") or (isinstance(value, cst.IfExp) and (_may_be_none(value.body) or _may_be_none(value.orelse)))


def layer_bases(rule: Rule, node: cst.BaseExpression) -> list[str]:
    """The torch layers that the module `node` (`self` or observed) is or derives from."""
    context = rule.context
    if context.is_self(node):
        return own_layer(rule)
    fact = context.observed(node)
    bases: list[str] = []
    for kind in fact.kinds if fact else ():
        name = kind.removeprefix("module:")
        model = context.repo.class_of(name)
        bases += [name] if model is None else [base for one in context.repo.ancestors(model) for base in context.repo.bases(one)]
    return bases


def _is_name(node: cst.BaseExpression | None, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _literal_text(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.SimpleString):
        value = ast.literal_eval(node.value)
        return value if isinstance(value, str) else None
    return None
