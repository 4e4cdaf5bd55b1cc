"""Device plumbing goes: JAX places arrays itself."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rule
from migrate_agent.tools.types import Observed


def is_device(fact: Observed | None) -> bool:
    """Whether an expression is always a torch device."""
    return bool(fact) and set(fact.kinds) == {"device"}  # type: ignore[union-attr]


class DropDevicePlumbing(Rule):
    """`device = x.device` goes, also out of tuple assignments; a device that is passed on becomes `None`."""

    ORDER = 15
    KEEP = ("def f(x):\n    name = x.name\n    return name\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    b, device = x.shape[0], x.device\n    return torch.arange(b, device=device)\n",
            "def f(x: jax.Array):\n    b = x.shape[0]\n    return jnp.arange(b)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    b, *axis, device = *x.shape, x.device\n    return torch.ones(axis, device=device) * b\n",
            "def f(x: jax.Array):\n    b, *axis = x.shape\n    return jnp.ones(axis) * b\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | cst.RemovalSentinel | None:
        if is_device(self.context.observed(original.value)) and all(isinstance(t.target, cst.Name) for t in original.targets):
            return cst.RemoveFromParent()
        if len(original.targets) == 1 and isinstance(original.targets[0].target, cst.Tuple) and isinstance(original.value, cst.Tuple):
            return self._tuple(original.value, updated)
        return None

    def _tuple(self, source: cst.Tuple, updated: cst.Assign) -> cst.Assign | None:
        target, value = updated.targets[0].target, updated.value
        assert isinstance(target, cst.Tuple)
        if not isinstance(value, cst.Tuple):
            return None
        devices = [i for i, e in enumerate(source.elements) if is_device(self.context.observed(e.value))]
        if not devices:
            return None
        targets, values = list(target.elements), list(value.elements)
        for i in reversed(devices):
            place = _partner(targets, values, i)
            if place is None or not isinstance(targets[place].value, cst.Name):
                return None
            del values[i]
            del targets[place]
        if len(values) == 1 and isinstance(values[0], cst.StarredElement):  # `b, *_, device = *x.shape, x.device` → `b, *_ = x.shape`
            unpacked = cst.Tuple(targets) if len(targets) == 1 else _tuple(targets, target)
            return updated.with_changes(targets=[updated.targets[0].with_changes(target=unpacked)], value=values[0].value)
        return updated.with_changes(targets=[updated.targets[0].with_changes(target=_tuple(targets, target))], value=_tuple(values, value))

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        parent = self.context.parent()
        if isinstance(parent, (cst.AssignTarget, cst.Attribute)) or not is_device(self.context.observed(original)):
            return None
        return cst.Name("None")

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression | None:
        parent = self.context.parent()
        if not is_device(self.context.observed(original)) or not isinstance(
            parent,
            (cst.Arg, cst.Element, cst.DictElement, cst.IfExp, cst.BooleanOperation, cst.Comparison, cst.ComparisonTarget, cst.Return),
        ):
            return None
        if isinstance(parent, cst.Element) and self._stored():
            return None
        if isinstance(parent, cst.Arg) and parent.keyword is original:
            return None
        return cst.Name("None")

    def _stored(self) -> bool:
        return any(isinstance(node, cst.AssignTarget) for node in self.context.stack[-4:])


def _partner(targets: list[cst.BaseElement], values: list[cst.BaseElement], place: int) -> int | None:
    """Which target gets the value at this place, counted from that end which no star stands before; `None` where both have one."""
    starred = [[isinstance(e, cst.StarredElement) for e in elements] for elements in (targets, values)]
    if not any(starred[0][: place + 1]) and not any(starred[1][:place]):
        return place
    left = len(values) - place
    return len(targets) - left if not any(starred[0][-left:]) and not any(starred[1][-left:]) else None


def _tuple(elements: list[cst.BaseElement], old: cst.Tuple) -> cst.BaseExpression:
    if len(elements) == 1:
        only = elements[0]
        if isinstance(only, cst.Element):
            return only.value
        return cst.Tuple([only.with_changes(comma=cst.Comma())], lpar=old.lpar, rpar=old.rpar)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = len(elements) - 1
    return old.with_changes(
        elements=[e.with_changes(comma=comma if i < last else cst.MaybeSentinel.DEFAULT) for i, e in enumerate(elements)]
    )
