"""Functions that a module keeps, and that hold the module, are kept unbound and handed the module when they are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import libcst as cst

from migrate_agent.tools.rewrite.analysis.self_references import HELD, own_aliases
from migrate_agent.tools.rewrite.rules.rule import Rule


class UnbindKeptMethods(Rule):
    """Keep functions unbound and hand them the module: `self.fn = self._a` → `self.fn = type(self)._a`, `self.fn(x)` → `self.fn(self, x)`.

    NNX rebuilds modules from their state, so a bound method would compute with an old one. Likewise in
    tables, for lambdas and `partial`. Declines (a hole) where functions with and without the module
    stand under one name, or not all uses are in sight. A lambda that reads nothing but numbers which the constructor got reads its arguments instead.
    """

    KEEP = ("class Plain:\n    def __init__(self):\n        self.fn = self.g\n\n    def g(self, x):\n        return self.fn(x)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, mode):\n        super().__init__()\n"
            '        self.fn = self.f if mode else self.g\n        self.table = {"f": self.f, "g": self.g}\n\n'
            "    def f(self, x):\n        return x\n\n    def g(self, x):\n        return -x\n\n    def forward(self, x, k):\n"
            "        return self.fn(x) + self.table[k](x) + sum(map(self.fn, x))\n",
            "class M(nnx.Module):\n    def __init__(self, mode, *, rngs: nnx.Rngs):\n"
            '        self.fn = type(self).f if mode else type(self).g\n        self.table = {"f": type(self).f, "g": type(self).g}\n\n'
            "    def f(self, x):\n        return x\n\n    def g(self, x):\n        return -x\n\n    def __call__(self, x, k):\n"
            "        return self.fn(self, x) + self.table[k](self, x) + sum(map(functools.partial(self.fn, self), x))\n",
        ),
        (
            "from functools import partial\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, mode):\n        super().__init__()\n"
            "        self.n = 2\n        self.pre = lambda t: t * 3\n        self.post = (lambda t: t * self.n) if mode else (lambda t: t)\n\n"
            "        def twice(t, /, k=1):\n            return t * self.n * k\n\n        self.twice = twice\n"
            "        self.part = partial(self.f, k=1)\n\n    def f(self, x, k):\n        return x * k\n\n"
            "    def forward(self, x):\n        return self.twice(self.post(self.pre(x))) + self.part(x)\n",
            "from functools import partial\n\n\nclass M(nnx.Module):\n    def __init__(self, mode, *, rngs: nnx.Rngs):\n"
            "        self.n = 2\n        self.pre = lambda t: t * 3\n"
            "        self.post = (lambda self, t: t * self.n) if mode else (lambda self, t: t)\n\n"
            "        def twice(self, t, /, k=1):\n            return t * self.n * k\n\n        self.twice = twice\n"
            "        self.part = partial(type(self).f, k=1)\n\n    def f(self, x, k):\n        return x * k\n\n"
            "    def __call__(self, x):\n        return self.twice(self, self.post(self, self.pre(x))) + self.part(self, x)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, mode):\n        super().__init__()\n"
            "        self.mode = mode\n        self.fn = self.pick()\n\n    def pick(self):\n        if self.mode:\n            return self.f\n"
            "        return self.g\n\n    def f(self, x):\n        return x\n\n    def g(self, x):\n        return -x\n\n"
            "    def forward(self, x):\n        return self.fn(x)\n",
            "class M(nnx.Module):\n    def __init__(self, mode, *, rngs: nnx.Rngs):\n"
            "        self.mode = mode\n        self.fn = self.pick()\n\n    def pick(self):\n        if self.mode:\n            return type(self).f\n"
            "        return type(self).g\n\n    def f(self, x):\n        return x\n\n    def g(self, x):\n        return -x\n\n"
            "    def __call__(self, x):\n        return self.fn(self, x)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, part):\n        super().__init__()\n"
            "        self.part = part\n        p = self.part\n        self.fn = lambda x: p.scale(p(x))\n\n"
            "    def forward(self, x):\n        return x + self.fn(x)\n",
            "class M(nnx.Module):\n    def __init__(self, part, *, rngs: nnx.Rngs):\n"
            "        self.part = part\n        self.fn = lambda self, x: self.part.scale(self.part(x))\n\n"
            "    def __call__(self, x):\n        return x + self.fn(self, x)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, dim: int, scale: bool):\n        super().__init__()\n"
            "        self.dim = dim\n        self.s = lambda x: x.new_zeros(len(x), self.dim // 2)\n        if scale:\n            self.s = nn.Linear(dim, dim)\n\n"
            "    def forward(self, x):\n        return self.s(x)\n",
            "class M(nnx.Module):\n    def __init__(self, dim: int, scale: bool, *, rngs: nnx.Rngs):\n"
            "        self.dim = dim\n        self.s = lambda x: jnp.zeros((len(x), dim // 2), dtype=x.dtype)\n        if scale:\n"
            "            self.s = nnx.data(Linear(dim, dim, rngs=rngs))\n\n"
            "    def __call__(self, x):\n        return self.s(x)\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        references = self.context.class_facts.self_references
        span = self.context.span(original)
        if (argument := references.arguments.get(span)) is not None:
            return cst.Name(argument)
        if span in references.methods:
            return updated.with_changes(value=cst.Call(cst.Name("type"), [cst.Arg(updated.value)]))
        return self._bound_function(updated) if span in references.values and self.context.is_self(original.value) else None

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        return self._bound_function(updated) if self.context.span(original) in self.context.class_facts.self_references.values else None

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if self.context.span(original) not in self.context.class_facts.self_references.calls:
            return None
        return updated.with_changes(args=[cst.Arg(cst.Name(self.context.self_name())), *updated.args])

    def leave_Lambda(self, original: cst.Lambda, updated: cst.Lambda) -> cst.BaseExpression | None:
        if self.context.span(original) not in self.context.class_facts.self_references.functions:
            return None
        aliases = self._aliases()
        self._refuse_rebuilt(original, updated, aliases)
        body = updated.body.visit(_Attributes(self.context.self_name(), aliases)) if aliases else updated.body
        return updated.with_changes(params=self._with_module(updated.params), body=body)

    def _aliases(self) -> dict[str, str]:
        """Other names of the module's attributes in the method at hand."""
        model, method = self.context.cls, self.context.function
        return own_aliases(method, model.own) if model is not None and method is not None else {}

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        if self.context.span(original) not in self.context.class_facts.self_references.functions:
            return None
        self._refuse_rebuilt(original, updated)
        return updated.with_changes(params=self._with_module(updated.params))

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> None:
        self._refuse(original)

    def leave_AnnAssign(self, original: cst.AnnAssign, updated: cst.AnnAssign) -> None:
        self._refuse(original)

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> None:
        self._refuse(original)

    def _refuse(self, original: cst.CSTNode) -> None:
        if reason := self.context.class_facts.self_references.refused.get(self.context.span(original)):
            self.context.hole(original, reason, "captured-module")

    def _bound_function(self, node: cst.BaseExpression) -> cst.BaseExpression:
        return self.context.build("functools.partial({f}, {module})", f=node, module=cst.Name(self.context.self_name()))

    def _with_module(self, params: cst.Parameters) -> cst.Parameters:
        first = cst.Param(cst.Name(self.context.self_name()))
        # What stands before a positional-only parameter is positional-only itself.
        if params.posonly_params:
            return params.with_changes(posonly_params=[first, *params.posonly_params])
        return params.with_changes(params=[first, *params.params])

    def _refuse_rebuilt(self, original: cst.Lambda | cst.FunctionDef, updated: cst.CSTNode, aliases: Collection[str] = ()) -> None:
        """A hole where the function holds more of what NNX rebuilds: another module, a parameter, a generator."""
        names = [node for node in _free_names(original) if not self.context.is_self(node) and node.value not in aliases]
        kinds = [(node.value, fact.kinds) for node in names if (fact := self.context.observed(node))]
        rebuilt = [name for name, name_kinds in kinds if any(kind == "parameter" or kind.startswith("module:") for kind in name_kinds)]
        # A function that draws would go on drawing from the streams of a module that is no more.
        if any(node.value == "rngs" for node in _names(updated)):
            rebuilt.append("rngs")
        if rebuilt:
            self.context.hole(original, f"{HELD}it holds {rebuilt[0]} too", "captured-module")


class _Attributes(cst.CSTTransformer):
    """Puts attributes of the module in place of other names of theirs."""

    def __init__(self, module: str, aliases: Mapping[str, str]) -> None:
        super().__init__()
        self._module, self._aliases = module, aliases

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """`m` → `self.mlp`."""
        attribute = self._aliases.get(updated_node.value)
        return updated_node if attribute is None else cst.Attribute(cst.Name(self._module), cst.Name(attribute))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        """The name of an attribute is no name."""
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """Nor is a keyword."""
        return updated_node.with_changes(keyword=original_node.keyword)


def _free_names(function: cst.Lambda | cst.FunctionDef) -> list[cst.Name]:
    """The names that a function holds: those that it does not bind itself, and those that its defaults read."""
    parameters = [*function.params.posonly_params, *function.params.params, *function.params.kwonly_params]
    starred = [one for one in (function.params.star_arg, function.params.star_kwarg) if isinstance(one, cst.Param)]
    own = {parameter.name.value for parameter in (*parameters, *starred)}
    defaults = [name for parameter in parameters if parameter.default for name in _names(parameter.default)]
    return [*(name for name in _names(function.body) if name.value not in own), *defaults]


def _names(node: cst.CSTNode) -> list[cst.Name]:
    if isinstance(node, cst.Name):
        return [node]
    return [name for child in node.children for name in _names(child)]
