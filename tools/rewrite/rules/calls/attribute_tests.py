"""Attributes that code asks for or looks up by names of torch: `hasattr(m.bias, "data")`, `getattr(x, ("cpu", "cuda")[x.is_cuda])()`."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.rule import Rule

PLACES = frozenset({"cpu", "cuda"})
"""Methods that only say where a tensor lies."""


class AskForParameters(Rule):
    """Ask whether a layer has a parameter: `hasattr(m.bias, "data")` → `m.bias is not None`, inside of a test of the layer's class.

    A tensor of torch has `data`, and `None` has not. Declines where no test says that `m` is a layer: its `bias` may be a switch.
    """

    KEEP = ("def f(m):\n    if hasattr(m.bias, 'data'):\n        return 1\n    return 0\n",)
    CHANGE = (
        (
            "from torch import nn\n\ndef f(m):\n    if isinstance(m, nn.Linear):\n        return 2\n    elif hasattr(m.bias, 'data'):\n        return 1\n",
            "def f(m):\n    if isinstance(m, nnx.Linear):\n        return 2\n    elif hasattr(m.bias, 'data'):\n        return 1\n",
        ),
        (
            "from torch import nn\n\ndef f(m):\n    if isinstance(m, nn.Linear):\n        if hasattr(m.bias, 'data'):\n            return 1\n    return 0\n",
            "def f(m):\n    if isinstance(m, nnx.Linear):\n        if m.bias is not None:\n            return 1\n    return 0\n",
        ),
        (
            "from torch import nn\n\ndef f(m):\n    if isinstance(m, nn.Conv2d) and not hasattr(m.bias, 'data'):\n        return 1\n    return 0\n",
            "def f(m):\n    if isinstance(m, Conv2d) and m.bias is None:\n        return 1\n    return 0\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not self._asks(original) or isinstance(self.context.parent(), cst.UnaryOperation):
            return None
        test = self.context.build("{value} is not None", value=updated.args[0].value)
        return self.context.parenthesise(test)

    def leave_UnaryOperation(self, original: cst.UnaryOperation, updated: cst.UnaryOperation) -> cst.BaseExpression | None:
        call = updated.expression
        if not isinstance(original.operator, cst.Not) or not self._asks(original.expression) or not isinstance(call, cst.Call):
            return None
        return self.context.parenthesise(self.context.build("{value} is None", value=call.args[0].value))

    def _asks(self, node: cst.BaseExpression) -> bool:
        """Whether this asks whether a parameter of a layer has `data`."""
        match node:
            case cst.Call(
                func=cst.Name("hasattr"),
                args=[
                    cst.Arg(value=cst.Attribute(value=cst.Name(layer), attr=cst.Name("weight" | "bias"))),
                    cst.Arg(value=cst.SimpleString() as name),
                ],
            ) if name.evaluated_value == "data":
                return any(self._tests(holder, layer) for holder in self.context.stack)
        return False

    def _tests(self, holder: cst.CSTNode, layer: str) -> bool:
        """Whether a statement or condition around asks for the class of the layer."""
        within = isinstance(holder, cst.If) and any(one is holder.body for one in self.context.stack)
        test = holder.test if isinstance(holder, cst.If) and within else holder if isinstance(holder, cst.BooleanOperation) else None
        denied = m.UnaryOperation(operator=m.Not(), expression=m.Call(func=m.Name("isinstance")))
        if test is None or m.findall(test, m.BooleanOperation(operator=m.Or()) | denied):
            return False
        question = m.Call(func=m.Name("isinstance"), args=[m.Arg(value=m.Name(layer)), m.Arg()])
        return any(self._is_of_torch(call) for call in m.findall(test, question) if isinstance(call, cst.Call))

    def _is_of_torch(self, call: cst.Call) -> bool:
        kinds = call.args[1].value
        classes = [element.value for element in kinds.elements] if isinstance(kinds, cst.Tuple) else [kinds]
        return all(self.context.dotted(kind).startswith("torch.nn.") for kind in classes)


class DropLookedUpPlaces(Rule):
    """Drop calls of a method that is looked up by where a tensor lies: `getattr(x, ("cpu", "cuda")[x.is_cuda])()` → `x`.

    Declines where another name may be looked up.
    """

    KEEP = ("def f(x, name):\n    return getattr(x, ('cpu', name)[x.n])(), getattr(x, name)()\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return x + getattr(torch.arange(3), ('cpu', 'cuda')[x.is_cuda])().long()\n",
            "def f(x: jax.Array):\n    return x + jnp.arange(3).astype(int)\n",
        ),
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    return getattr(x, 'cuda' if x.is_cuda else 'cpu')()\n",
            "def f(x: jax.Array):\n    return x\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        match original, updated:
            case (
                cst.Call(func=cst.Call(func=cst.Name("getattr"), args=[_, cst.Arg(value=name)]), args=[]),
                cst.Call(func=cst.Call(args=[cst.Arg(value=value), _])),
            ) if _names(name) and _names(name) <= PLACES:
                return self.context.parenthesise(value)
        return None


def _names(node: cst.BaseExpression) -> frozenset[str]:
    """The texts that an expression chooses from; none where it may give another one."""
    match node:
        case cst.SimpleString():
            return frozenset({str(node.evaluated_value)})
        case cst.IfExp(body=one, orelse=other):
            return _names(one) | _names(other) if _names(one) and _names(other) else frozenset()
        case cst.Subscript(value=cst.Tuple(elements=elements) | cst.List(elements=elements)):
            each = [_names(element.value) for element in elements]
            return frozenset().union(*each) if all(each) else frozenset()
    return frozenset()
