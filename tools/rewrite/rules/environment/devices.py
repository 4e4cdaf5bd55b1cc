"""Device plumbing goes: JAX places arrays itself."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.unpacking import drop_elements, matching_index, star_flags
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.types import Observed


def is_device(fact: Observed | None) -> bool:
    """Whether an expression is always a torch device."""
    return bool(fact) and set(fact.kinds) == {"device"}  # type: ignore[union-attr]


class DropDevicePlumbing(Rule):
    """Remove devices: `b, device = x.shape[0], x.device` → `b = x.shape[0]`; a device that is passed on → `None`; `x.device != y.device` → `False`.

    Declines for names that were not observed to be devices alone.
    """

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
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor, n: int):\n    if n < 2 or x.device != y.device:\n        y = y * 2\n    return y\n",
            "def f(x: jax.Array, y: jax.Array, n: int):\n    if n < 2:\n        y = y * 2\n    return y\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | cst.RemovalSentinel | None:
        if is_device(self.context.observed(original.value)) and all(isinstance(t.target, cst.Name) for t in original.targets):
            return cst.RemoveFromParent()
        if len(original.targets) == 1 and isinstance(original.targets[0].target, cst.Tuple) and isinstance(original.value, cst.Tuple):
            return self._without_devices(original.value, updated)
        return None

    def _without_devices(self, source: cst.Tuple, updated: cst.Assign) -> cst.Assign | None:
        target, value = updated.targets[0].target, updated.value
        assert isinstance(target, cst.Tuple)
        if not isinstance(value, cst.Tuple):
            return None
        devices = [i for i, e in enumerate(source.elements) if is_device(self.context.observed(e.value))]
        if not devices:
            return None
        starred = star_flags(target), star_flags(value)
        partners = [matching_index(*starred, i) for i in devices]
        targets = [index for index in partners if index is not None and isinstance(target.elements[index].value, cst.Name)]
        # A device inside what a star collects cannot be taken out alone, and an assignment needs a target.
        if len(targets) < len(partners) or len(targets) == len(target.elements):
            return None
        return drop_elements(updated, targets, devices)

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        parent = self.context.parent()
        if isinstance(parent, (cst.AssignTarget, cst.Attribute)) or not is_device(self.context.observed(original)):
            return None
        return cst.Name("None")

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.Name | None:
        """Arrays of one program are in one place."""
        only = original.comparisons[0]
        sides = (original.left, only.comparator)
        if len(original.comparisons) > 1 or not isinstance(only.operator, (cst.Equal, cst.NotEqual)):
            return None
        if not all(
            isinstance(side, cst.Attribute) and side.attr.value == "device" and is_device(self.context.observed(side)) for side in sides
        ):
            return None
        return cst.Name(str(isinstance(only.operator, cst.Equal)))

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression | None:
        parent = self.context.parent()
        if not is_device(self.context.observed(original)) or not isinstance(
            parent,
            (cst.Arg, cst.Element, cst.DictElement, cst.IfExp, cst.BooleanOperation, cst.Comparison, cst.ComparisonTarget, cst.Return),
        ):
            return None
        # An element of a tuple on the left side is a target.
        if isinstance(parent, cst.Element) and self._is_in_target():
            return None
        if isinstance(parent, cst.Arg) and parent.keyword is original:
            return None
        return cst.Name("None")

    def _is_in_target(self) -> bool:
        return any(isinstance(node, cst.AssignTarget) for node in self.context.stack[-4:])
