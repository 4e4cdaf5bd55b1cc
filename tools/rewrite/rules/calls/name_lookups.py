"""Names of torch that are looked up by a string: `getattr(nn, activation)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from migrate_agent.tools.rewrite.analysis.randomness import draws
from migrate_agent.tools.rewrite.rules.calls.torch_references import NAMESPACES, ReplaceTorchReferences
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import Refuse, layers, ops


class ReplaceLookups(Rule):
    """Replace lookups by name: `getattr(nn, "ReLU")` → `ReLU`, `getattr(nn, name)` → `{"ELU": ELU, "ReLU": ReLU}[name]`.

    The table has the layers that were observed or are named in the file; `getattr(F, name)` likewise with
    functions. Declines (a hole) where there is none, and where one draws random numbers.
    """

    KEEP = ("def f(options, name):\n    return getattr(options, name)\n",)
    CHANGE = (
        ("from torch import nn\n\ndef f():\n    return getattr(nn, 'ReLU')()\n", "def f():\n    return ReLU()\n"),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, act='ELU'):\n        super().__init__()\n"
            "        self.act = getattr(nn, act)(inplace=True)\n",
            "class M(nnx.Module):\n    def __init__(self, act='ELU', *, rngs: nnx.Rngs):\n        self.act = {'ELU': ELU}[act](inplace=True)\n",
        ),
        (
            "import torch.nn.functional as F\n\ndef f(x, name='relu'):\n    assert name in ('relu', 'tanh', 'sum')\n    return getattr(F, name)\n",
            "def f(x, name='relu'):\n    assert name in ('relu', 'tanh', 'sum')\n    return {'relu': jax.nn.relu, 'tanh': jnp.tanh}[name]\n",
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
                return self._by_literal(namespace, name, updated)
            return self._by_table(namespace, original, updated)
        except Refuse as refusal:
            self.context.hole(original, refusal.reason, refusal.code)
            return None

    def _by_literal(self, namespace: str, name: cst.SimpleString, updated: cst.Call) -> cst.BaseExpression:
        dotted = f"{namespace}.{name.raw_value}"
        if _has_counterpart(dotted):
            return self._value(dotted)
        if len(updated.args) == 3 and not name.raw_value.startswith("_"):
            return updated.args[2].value
        raise Refuse(f"{dotted} is looked up by its name", "unknown-op")

    def _by_table(self, namespace: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        fact = self.context.observed(original)
        observed = {kind.removeprefix("class:").removeprefix("function:") for kind in fact.kinds} if fact else set()
        if not all(_has_counterpart(dotted) for dotted in observed):
            raise Refuse("what a computed name of torch stands for is not known to be a layer", "dynamic-name")
        candidates = sorted(observed | set(self._names_in_file(namespace)))
        if not candidates:
            raise Refuse("no example shows which layer a computed name stands for", "dynamic-name")
        elements = [cst.DictElement(cst.SimpleString(repr(dotted.rpartition(".")[2])), self._value(dotted)) for dotted in candidates]
        index = cst.SubscriptElement(cst.Index(updated.args[1].value))
        if len(updated.args) == 3:
            return cst.Call(cst.Attribute(cst.Dict(elements), cst.Name("get")), updated.args[1:])
        return cst.Subscript(cst.Dict(elements), [index])

    def _value(self, dotted: str) -> cst.BaseExpression:
        return ReplaceTorchReferences(self.context).value(dotted)

    def _names_in_file(self, namespace: str) -> Iterator[str]:
        """Layers, or functions of `torch.nn.functional`, whose names stand as strings in the file."""
        for node in ast.walk(self.context.file.tree):
            # Of `torch` itself almost any word in a file is a function (`"sum"`, `"max"`): it says nothing about what is looked up.
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and namespace != "torch":
                if _has_counterpart(dotted := f"{namespace}.{node.value}"):
                    yield dotted


def _has_counterpart(dotted: str) -> bool:
    """Whether there is a layer of this name, or a function that needs no key."""
    return dotted in layers() or (dotted in ops() and not draws(ops()[dotted]))
