"""Lists of modules: put together and cut as `nn.ModuleList`s are."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.apply_tables import bare, tidy
from migrate_agent.tools.rewrite.rules.rule import Rule

LISTS = frozenset({"module:torch.nn.ModuleList", "module:torch.nn.ParameterList"})


class JoinModuleLists(Rule):
    """Join and cut module lists: `layers[1:] + more` → `nnx.List([*layers[1:], *more])`, `self.first = layers[:2]` → `nnx.List(layers[:2])`.

    `del layers[2]` makes a new list, too: NNX's own keeps a trace of what was deleted. Declines for plain lists.
    """

    KEEP = ("def f(a: list, b: list):\n    return a + b[1:]\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.a = nn.ModuleList([nn.Linear(d, d)])\n        self.b = self.a[:1]\n        self.c = self.a + nn.ModuleList()\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = nnx.List([Linear(d, d, rngs=rngs)])\n"
            "        self.b = nnx.List(self.a[:1])\n        self.c = nnx.List([*self.a, *nnx.List()])\n",
        ),
    )

    def leave_BinaryOperation(self, original: cst.BinaryOperation, updated: cst.BinaryOperation) -> cst.BaseExpression | None:
        if not isinstance(updated.operator, cst.Add) or not (self._is_module_list(original.left) and self._is_module_list(original.right)):
            return None
        return self.context.build("nnx.List([*{a}, *{b}])", a=bare(updated.left), b=bare(updated.right))

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        target = original.targets[0].target
        if not isinstance(original.value, cst.Subscript) or not self._is_module_list(original.value):
            return None
        # NNX looks at attributes only: a part that a local name keeps may be a plain list.
        if not (isinstance(target, cst.Attribute) and self.context.is_self(target.value)) or not _is_slice(original.value):
            return None
        return updated.with_changes(value=self.context.build("nnx.List({x})", x=updated.value))

    def leave_Del(self, original: cst.Del, updated: cst.Del) -> cst.Assign | None:
        target = updated.target
        if not (
            isinstance(original.target, cst.Subscript) and isinstance(target, cst.Subscript) and self._is_module_list(original.target.value)
        ):
            return None
        index = _index_value(target.slice[0].slice)
        if index is None or not isinstance(target.value, (cst.Name, cst.Attribute)):
            return None
        value = self.context.build("vendored.without_items({x}, {i})", x=target.value, i=index)
        return cst.Assign([cst.AssignTarget(target.value)], value)

    def _is_module_list(self, node: cst.BaseExpression) -> bool:
        fact = self.context.observed(node)
        if fact is None and isinstance(node, cst.Subscript) and _is_slice(node):
            fact = self.context.observed(node.value)
        return fact is not None and set(fact.kinds) <= LISTS


def _is_slice(node: cst.Subscript) -> bool:
    """Whether the index is a slice."""
    return len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Slice)


def _index_value(index: cst.BaseSlice) -> cst.BaseExpression | None:
    """What stands between the brackets, as a value."""
    if isinstance(index, cst.Index):
        return index.value
    if not isinstance(index, cst.Slice):
        return None
    parts = [part or cst.Name("None") for part in (index.lower, index.upper, index.step)]
    return cst.Call(cst.Name("slice"), tidy([cst.Arg(part) for part in parts]))
