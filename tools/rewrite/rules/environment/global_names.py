"""`globals()`, the names of a file by their text: only what the file defines can be meant."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk


class SpellOutGlobals(Rule):
    """Spell out the names of a file: `globals().get(name)` → `{"relu": relu, "swish": swish}.get(name)`.

    The table has the functions, classes and constants of the file. `getattr(sys.modules[__name__], name)`
    becomes a table of those of its classes or functions that were observed or stand as strings in the
    file. Declines where the dictionary is passed on or changed.
    """

    KEEP = ("def f():\n    return 1\n",)
    CHANGE = (
        (
            "from torch import nn\n\ndef relu():\n    return nn.ReLU()\n\n\ndef get(name):\n    return globals().get(name)()\n\n\nact = relu\n",
            'def relu():\n    return jax.nn.relu\n\n\ndef get(name):\n    return {"act": act, "get": get, "relu": relu}.get(name)()\n\n\nact = relu\n',
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if self._looks_up_in_file(original):
            return self._by_kind(original, updated)
        if not isinstance(original.func, cst.Name) or original.func.value != "globals" or original.args:
            return None
        if self.context.at_host:
            # A script has the same names, and settings that it lets a file change.
            self.context.drop_holes(original)
            return None
        if not self.context.repo.names_torch or "globals" in self.context.taken or not self._is_only_read():
            return None
        file = self.context.file
        names = sorted({name for name in (*file.functions, *file.classes, *_assigned_names(file.tree)) if "." not in name})
        self.context.drop_holes(original)
        return cst.Dict([cst.DictElement(cst.SimpleString(f'"{name}"'), cst.Name(name)) for name in names])

    def _looks_up_in_file(self, call: cst.Call) -> bool:
        """Whether this is `getattr(sys.modules[__name__], name)`."""
        if not (isinstance(call.func, cst.Name) and call.func.value == "getattr" and len(call.args) == 2):
            return False
        match call.args[0].value:
            case cst.Subscript(value=registry, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value="__name__")))]):
                return self.context.dotted(registry) == "sys.modules"
        return False

    def _by_kind(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        fact, file = self.context.observed(original), self.context.file
        heads = {kind.partition(":")[0] for kind in fact.kinds} if fact else set()
        tables: dict[str, Collection[str]] = {"class": file.classes, "function": file.functions}
        here = {name for head in heads & tables.keys() for name in tables[head] if "." not in name}
        observed = {kind.partition(":")[2].removeprefix(f"{file.file.module}.") for kind in fact.kinds} if fact else set()
        texts = {node.value for node in walk(file.tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        names = sorted(here & (observed | texts))
        if not observed <= here or not names or heads - tables.keys():
            return None
        self.context.drop_holes(original.args[0].value)
        elements = [cst.DictElement(cst.SimpleString(f'"{name}"'), cst.Name(name)) for name in names]
        return cst.Subscript(cst.Dict(elements), [cst.SubscriptElement(cst.Index(updated.args[1].value))])

    def _is_only_read(self) -> bool:
        parent, grand = self.context.parent(), self.context.parent(2)
        # A write would bind a global name, and one to the table nothing.
        if isinstance(parent, cst.Subscript):
            return not isinstance(grand, (cst.AssignTarget, cst.AugAssign, cst.Del))
        if isinstance(parent, cst.ComparisonTarget):
            return isinstance(parent.operator, (cst.In, cst.NotIn))
        return isinstance(parent, cst.Attribute) and parent.attr.value in ("get", "keys", "values", "items")


def _assigned_names(tree: ast.Module) -> Iterator[str]:
    """Names that statements at the top of a file assign to, but for those that Python gives a meaning."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name) and not target.id.startswith("__"))
