"""Device plumbing goes: JAX places arrays itself."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.types import Observed

OF_DEVICE: Mapping[str, str] = {"type": '"cpu"', "index": "None"}
"""Attributes of a device, as on the machine where both sides are compared."""
ASKED: Mapping[type[cst.BaseCompOp], Callable[[Any, Any], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.In: lambda one, many: one in many,
    cst.NotIn: lambda one, many: one not in many,
}


def _literals(node: cst.BaseExpression) -> Any:
    """A literal text or number, or several of them; `None` for anything else."""
    match node:
        case cst.SimpleString():
            return node.evaluated_value
        case cst.Tuple(elements=elements) | cst.List(elements=elements) | cst.Set(elements=elements):
            parts = [_literals(element.value) for element in elements]
            return None if None in parts else parts
    return None


def is_device(fact: Observed | None) -> bool:
    """Whether an expression is always a torch device."""
    return bool(fact) and set(fact.kinds) == {"device"}  # type: ignore[union-attr]


class DropDevicePlumbing(Rule):
    """Remove devices: `device = x.device` goes; a device that is passed on → `None`; `x.device != y.device` → `False`.

    Code for other devices is decided against: `x.device.type` → `"cpu"`, so that a comparison with `"cuda"` is `False`.
    Declines for names that were not observed to be devices alone.
    """

    KEEP = ("def f(x):\n    name = x.name\n    return name\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    device = x.device\n    return torch.arange(3, device=device)\n",
            "def f(x: jax.Array):\n    return jnp.arange(3)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor, n: int):\n    if n < 2 or x.device != y.device:\n        y = y * 2\n    return y\n",
            "def f(x: jax.Array, y: jax.Array, n: int):\n    if n < 2:\n        y = y * 2\n    return y\n",
        ),
        (
            'import torch\n\ndef f(x: torch.Tensor):\n    if x.device.type == "cuda":\n        x = x * 2\n    elif x.device.type in ("mps", "xpu"):\n'
            '        x = x * 3\n    if "cuda" in str(x.device) or x.device == torch.device("cuda"):\n        x = x * 4\n    return x\n',
            "def f(x: jax.Array):\n    return x\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    kind = x.device.type\n"
            "    with torch.autocast(device_type=kind, enabled=False):\n        return x * 2\n",
            "def f(x: jax.Array):\n    return x * 2\n",
        ),
        (
            "import torch\n\nclass C:\n    def f(self, x: torch.Tensor):\n        self.place = x.device\n        del self.place\n        return x\n",
            "class C:\n    def f(self, x: jax.Array):\n        self.place = None\n        del self.place\n        return x\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.RemovalSentinel | None:
        if is_device(self.context.observed(original.value)) and all(isinstance(t.target, cst.Name) for t in original.targets):
            return cst.RemoveFromParent()
        return None

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        if self.context.is_target(original):
            return None
        if original.attr.value in OF_DEVICE and is_device(self.context.observed(original.value)):
            return cst.parse_expression(OF_DEVICE[original.attr.value])
        if isinstance(self.context.parent(), cst.Attribute) or not is_device(self.context.observed(original)):
            return None
        return cst.Name("None")

    def leave_Call(self, original: cst.Call, updated: cst.BaseExpression) -> cst.BaseExpression | None:
        """`str(x.device)`."""
        named = isinstance(original.func, cst.Name) and original.func.value in ("str", "repr") and len(original.args) == 1
        return cst.SimpleString('"cpu"') if named and is_device(self.context.observed(original.args[0].value)) else None

    def leave_Comparison(self, original: cst.Comparison, updated: cst.Comparison) -> cst.Name | None:
        """Arrays of one program are in one place."""
        if (decided := self._with_literal(original, updated)) is not None:
            return decided
        only = original.comparisons[0]
        sides = (original.left, only.comparator)
        if len(original.comparisons) > 1 or not isinstance(only.operator, (cst.Equal, cst.NotEqual)):
            return None
        if not all(is_device(self.context.observed(side)) or self._named_device(side) for side in sides):
            return None
        named = [text for side in sides if (text := self._named_device(side))]
        if len(named) < 2 and not all(isinstance(side, (cst.Attribute, cst.Call)) for side in sides):
            return None
        same = all(text.startswith("cpu") for text in named)
        return cst.Name(str(same is isinstance(only.operator, cst.Equal)))

    def _named_device(self, node: cst.BaseExpression) -> str:
        """`"cuda:0"` of `torch.device("cuda:0")`."""
        text = node.args[0].value if isinstance(node, cst.Call) and node.args and self.context.dotted(node.func) == "torch.device" else None
        return str(text.evaluated_value) if isinstance(text, cst.SimpleString) else ""

    def _with_literal(self, original: cst.Comparison, updated: cst.Comparison) -> cst.Name | None:
        """What a question about the name of a device comes to: `x.device.type == "cuda"`, `x.device.type in ("cuda", "mps")`, `"cuda" in str(x.device)`."""
        only = original.comparisons[0]
        new = updated.comparisons[0].comparator
        if len(original.comparisons) > 1 or not any(self._names_device(side) for side in (original.left, only.comparator)):
            return None
        left, right = _literals(updated.left), _literals(new)
        ask = ASKED.get(type(only.operator))
        return None if left is None or right is None or ask is None else cst.Name(str(ask(left, right)))

    def _names_device(self, node: cst.BaseExpression) -> bool:
        match node:
            case cst.Attribute(value=value, attr=cst.Name(name)):
                return name in OF_DEVICE and is_device(self.context.observed(value))
            case cst.Call(func=cst.Name("str" | "repr"), args=[cst.Arg(value=value)]):
                return is_device(self.context.observed(value))
        return False

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> cst.BaseExpression | None:
        parent = self.context.parent()
        if not is_device(self.context.observed(original)) or not isinstance(
            parent,
            (cst.Arg, cst.Element, cst.DictElement, cst.IfExp, cst.BooleanOperation, cst.Comparison, cst.ComparisonTarget, cst.Return),
        ):
            return None
        if self.context.is_target(original) or (isinstance(parent, cst.Arg) and parent.keyword is original):
            return None
        return cst.Name("None")
