"""Names of torch that are looked up by a string: `getattr(nn, activation)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rule
from migrate_agent.tools.rewrite.tables import Refuse, layers

NAMESPACES = frozenset({"torch.nn", "torch.nn.functional", "torch"})


class ReplaceLookups(Rule):
    """`getattr(nn, "ReLU")` → `ReLU`; `getattr(nn, name)` → `{"ELU": ELU, "ReLU": ReLU}[name]` with the layers that were seen or are named in the file.

    Declines (a hole) where no layer was seen, and for functions looked up by a name that is computed.
    """

    ORDER = 9
    KEEP = ("def f(options, name):\n    return getattr(options, name)\n",)
    CHANGE = (
        ("from torch import nn\n\ndef f():\n    return getattr(nn, 'ReLU')()\n", "def f():\n    return ReLU()\n"),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, act='ELU'):\n        super().__init__()\n"
            "        self.act = getattr(nn, act)(inplace=True)\n",
            "class M(nnx.Module):\n    def __init__(self, act='ELU', *, rngs: nnx.Rngs):\n        self.act = {'ELU': ELU}[act](inplace=True)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not (isinstance(original.func, cst.Name) and original.func.value == "getattr" and len(original.args) in (2, 3)):
            return None
        namespace = self.context.dotted(original.args[0].value)
        if namespace not in NAMESPACES:
            return None
        name = original.args[1].value
        try:
            if isinstance(name, cst.SimpleString):
                return self._literal(namespace, name, updated)
            return self._table(original, updated)
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None

    def _literal(self, namespace: str, name: cst.SimpleString, updated: cst.Call) -> cst.BaseExpression:
        dotted = f"{namespace}.{name.raw_value}"
        if dotted in layers():
            return self.context.helper(layers()[dotted].vendored)
        if len(updated.args) == 3 and not name.raw_value.startswith("_"):
            return updated.args[2].value
        raise Refuse(f"{dotted} is looked up by its name", "unknown-op")

    def _table(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        fact = self.context.observed(original)
        seen = {kind.removeprefix("class:") for kind in fact.kinds} if fact else set()
        if not seen <= set(layers()):
            raise Refuse("what a computed name of torch stands for is not known to be a layer", "dynamic-name")
        wanted = sorted(seen | set(self._named()))
        if not wanted:
            raise Refuse("no example shows which layer a computed name stands for", "dynamic-name")
        elements = [
            cst.DictElement(cst.SimpleString(repr(dotted.rpartition(".")[2])), self.context.helper(layers()[dotted].vendored))
            for dotted in wanted
        ]
        index = cst.SubscriptElement(cst.Index(updated.args[1].value))
        if len(updated.args) == 3:
            return cst.Call(cst.Attribute(cst.Dict(elements), cst.Name("get")), updated.args[1:])
        return cst.Subscript(cst.Dict(elements), [index])

    def _named(self) -> Iterator[str]:
        """Layers whose names stand as strings in the file."""
        for node in ast.walk(self.context.file.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and f"torch.nn.{node.value}" in layers():
                yield f"torch.nn.{node.value}"
