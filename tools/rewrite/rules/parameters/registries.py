"""`module._modules` and its like, in which torch keeps what is inside a module, and the methods by which Python finds attributes."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from migrate_agent.tools.rewrite.rules.apply_tables import tidy
from migrate_agent.tools.rewrite.rules.parameters.registration import layer_bases
from migrate_agent.tools.rewrite.rules.parameters.removed_parameters import computes_removed
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import layers

REGISTRIES = frozenset({"_modules", "_parameters", "_buffers"})
ACCESSORS = {"__getattr__": "getattr", "__setattr__": "setattr", "__delattr__": "delattr"}


class ReplaceModuleRegistries(Rule):
    """Read parts through a function: `self._modules` → `dict(named_children(self))`.

    An entry is the attribute: `self._modules[name] = m` → `setattr(self, name, m)`, `self._buffers["x"]` →
    `self.x[...]`. Declines (a hole) where a registry is changed in another way.
    """

    KEEP = ("class Plain:\n    def f(self):\n        return self._modules\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Sequential):\n    def forward(self, x):\n        for part in self._modules.values():\n"
            "            x = part(x)\n        return x\n",
            "class M(Sequential):\n    def __call__(self, x):\n        for part in dict(named_children(self)).values():\n"
            "            x = part(x)\n        return x\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, names):\n        super().__init__()\n"
            "        self.names = names\n        for name in names:\n            self._modules[name] = nn.ReLU()\n"
            "        self._parameters['w'] = nn.Parameter(torch.ones(3))\n        self._buffers['b'] = torch.ones(3)\n\n"
            "    def forward(self, x):\n        for name in self.names:\n            x = self._modules[name](x)\n"
            "        return x * self._parameters['w'] + self._buffers['b']\n",
            "class M(nnx.Module):\n    def __init__(self, names, *, rngs: nnx.Rngs):\n        self.names = names\n"
            "        for name in names:\n            setattr(self, name, jax.nn.relu)\n        self.w = nnx.Param(jnp.ones(3))\n"
            "        self.b = nnx.Variable(jnp.ones(3))\n\n    def __call__(self, x):\n        for name in self.names:\n"
            "            x = getattr(self, name)(x)\n        return x * self.w[...] + self.b[...]\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, net):\n        super().__init__()\n        self.net = net\n\n"
            "    def __getattr__(self, name):\n        try:\n            return super().__getattr__(name)\n        except AttributeError:\n"
            "            return getattr(super().__getattr__('net'), name)\n",
            "class M(nnx.Module):\n    def __init__(self, net, *, rngs: nnx.Rngs):\n        self.net = net\n\n"
            "    def __getattr__(self, name):\n        try:\n            return object.__getattribute__(self, name)\n        except AttributeError:\n"
            "            return getattr(object.__getattribute__(self, 'net'), name)\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        if original.attr.value not in REGISTRIES or not self._is_module(original.value) or self._is_entry(original):
            return None
        if isinstance(self.context.parent(2), cst.Del) and computes_removed(self.context, original.value):
            return None
        # `named_children` gives a new dictionary: a change to that would reach nothing.
        if original.attr.value != "_modules" or self._is_changed(original):
            self.context.hole(original, "the registry of a module's parts is changed: NNX keeps parts as attributes", "module-method")
            return None
        return self.context.build("dict(vendored.named_children({module}))", module=updated.value)

    def leave_Subscript(self, original: cst.Subscript, updated: cst.Subscript) -> cst.BaseExpression | None:
        """An entry that is read."""
        entry = _entry(original, updated)
        if entry is None or not self._is_registry(original.value) or isinstance(self.context.parent(), (cst.AssignTarget, cst.Del)):
            return None
        registry, owner, key = entry
        variable = registry != "_modules"
        text = _text(key)
        if text.isidentifier():
            read: cst.BaseExpression = cst.Attribute(owner, cst.Name(text))
        else:
            read = cst.Call(cst.Name("getattr"), tidy([cst.Arg(owner), cst.Arg(key)]))
        return self.context.build("{read}[...]", read=read) if variable else read

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        """An entry that is set."""
        old, new = original.targets[0].target, updated.targets[0].target
        if len(original.targets) > 1 or not (isinstance(old, cst.Subscript) and isinstance(new, cst.Subscript)):
            return None
        entry = _entry(old, new)
        if entry is None or not self._is_registry(old.value):
            return None
        registry, owner, key = entry
        value = updated.value
        if registry == "_buffers" and not (isinstance(value, cst.Name) and value.value == "None"):
            value = self.context.build("nnx.Variable({value})", value=value)
        if _text(key).isidentifier():
            return cst.Assign([cst.AssignTarget(cst.Attribute(owner, cst.Name(_text(key))))], value)
        return cst.Expr(cst.Call(cst.Name("setattr"), tidy([cst.Arg(owner), cst.Arg(key), cst.Arg(value)])))

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """`self.__getattr__(name)` is what `getattr` calls; that of `nn.Module` finds what Python finds by itself here."""
        func, new = original.func, updated.func
        if not (isinstance(func, cst.Attribute) and func.attr.value in ACCESSORS and isinstance(new, cst.Attribute)):
            return None
        if func.attr.value == "__getattr__" and self._is_torchs_super(func.value):
            return self.context.build(f"object.__getattribute__({self.context.self_name()}, {{name}})", name=updated.args[0].value)
        if not self._is_module(func.value) or self._defines(func.value, func.attr.value):
            return None
        return cst.Call(cst.Name(ACCESSORS[func.attr.value]), tidy([cst.Arg(new.value), *updated.args]))

    def _is_torchs_super(self, node: cst.BaseExpression) -> bool:
        """Whether this is `super()` in a module class of which no base in the repository has a `__getattr__`."""
        cls, repo = self.context.cls, self.context.repo
        if cls is None or not (isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"):
            return False
        return repo.is_module_class(cls) and not any("__getattr__" in one.methods for one in repo.ancestors(cls) if one is not cls)

    def _defines(self, node: cst.BaseExpression, method: str) -> bool:
        """Whether the class at hand, or that of the module, has an attribute access of its own."""
        repo, cls = self.context.repo, self.context.cls
        fact = self.context.observed(node)
        models = (
            [cls] if self.context.is_self(node) else [repo.class_of(kind.removeprefix("module:")) for kind in fact.kinds] if fact else []
        )
        return any(method in one.methods for model in models if model for one in repo.ancestors(model))

    def _is_registry(self, node: cst.BaseExpression) -> bool:
        """Whether this is the registry of a module that keeps its parts as attributes: no layer and no container of torch."""
        if not isinstance(node, cst.Attribute) or node.attr.value not in REGISTRIES or not self._is_module(node.value):
            return False
        return not any(base in layers() for base in layer_bases(self, node.value))

    def _is_entry(self, node: cst.Attribute) -> bool:
        """Whether one entry of the registry is read or set by its name."""
        parent, grand = self.context.parent(), self.context.parent(2)
        plain = isinstance(parent, cst.Subscript) and parent.value is node and _key(parent) is not None
        return plain and not isinstance(grand, (cst.Del, cst.AugAssign)) and self._is_registry(node)

    def _is_module(self, node: cst.BaseExpression) -> bool:
        context = self.context
        if context.is_self(node):
            return bool(context.cls and context.repo.is_module_class(context.cls))
        fact = context.observed(node)
        return bool(fact and fact.kinds) and all(kind.startswith("module:") for kind in fact.kinds)  # type: ignore[union-attr]

    def _is_changed(self, node: cst.Attribute) -> bool:
        """Whether the registry itself is assigned to, an entry is set or deleted, or a method changes it."""
        parent, grand = self.context.parent(), self.context.parent(2)
        if isinstance(parent, (cst.AssignTarget, cst.Del)):
            return True
        if isinstance(parent, cst.Subscript):
            return isinstance(grand, (cst.AssignTarget, cst.AugAssign, cst.Del))
        return isinstance(parent, cst.Attribute) and parent.attr.value in ("pop", "popitem", "update", "clear", "setdefault")


class _Entry(NamedTuple):
    """`owner._modules[key]`, after rewriting."""

    registry: str
    owner: cst.BaseExpression
    key: cst.BaseExpression


def _entry(original: cst.Subscript, updated: cst.Subscript) -> _Entry | None:
    key = _key(updated)
    if not isinstance(original.value, cst.Attribute) or not isinstance(updated.value, cst.Attribute) or key is None:
        return None
    return _Entry(original.value.attr.value, updated.value.value, key)


def _key(node: cst.Subscript) -> cst.BaseExpression | None:
    only = node.slice[0].slice if len(node.slice) == 1 else None
    return only.value if isinstance(only, cst.Index) else None


def _text(node: cst.BaseExpression) -> str:
    return node.raw_value if isinstance(node, cst.SimpleString) else ""
