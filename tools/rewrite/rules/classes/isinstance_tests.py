"""`isinstance` of layers that JAX has as functions (`nn.ReLU()` → `jax.nn.relu`)."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import functional_layers

BESIDE = {"torch.nn.modules.dropout._DropoutNd": "nnx.Dropout", "torch.nn.modules.conv._ConvNd": "nnx.ConvTranspose"}
"""A base class of torch's layers → the class of Flax's own that one of them becomes, or derives from, and that does not derive from the helper."""


class ExtendIsinstanceTests(Rule):
    """Recognise layers that JAX has as functions: `isinstance(x, nn.ReLU)` → `x is jax.nn.relu or isinstance(x, ReLU)`.

    `isinstance(x, nn.Module)` also holds for the functions that `x` was seen to be a layer of. Declines where
    no such layer is meant.
    """

    KEEP = ("def f(x):\n    return isinstance(x, int)\n",)
    CHANGE = (
        (
            "from torch import nn\n\ndef f(x):\n    return isinstance(x, nn.ReLU)\n",
            "def f(x):\n    return x is jax.nn.relu or isinstance(x, ReLU)\n",
        ),
        (
            "from torch import nn\n\ndef f():\n    x = nn.Tanh()\n    assert isinstance(x, nn.Module)\n    return x\n",
            "def f():\n    x = jnp.tanh\n    assert x is jnp.tanh or isinstance(x, nnx.Module)\n    return x\n",
        ),
        (
            "from torch.nn.modules.dropout import _DropoutNd\n\ndef f(x):\n    return isinstance(x, _DropoutNd)\n",
            "def f(x):\n    return isinstance(x, (DropoutNd, nnx.Dropout))\n",
        ),
        (
            "import torch\nfrom torch import nn\n\ndef f(x):\n    return isinstance(x, (nn.Linear, torch.nn.modules.conv._ConvNd))\n",
            "def f(x):\n    return isinstance(x, (nnx.Linear, ConvNd, nnx.ConvTranspose))\n",
        ),
    )
    PLAIN = (
        (
            "from torch import nn\n\ndef f(x):\n    return isinstance(x, (nn.Conv1d, nn.Conv2d, nn.Linear)), isinstance(x, (nn.Conv1d, nn.Conv2d))\n",
            "def f(x):\n    return isinstance(x, (nnx.Conv, nnx.Linear)), isinstance(x, nnx.Conv)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not isinstance(original.func, cst.Name) or original.func.value != "isinstance" or len(original.args) != 2:
            return None
        value, tested_class = original.args[0].value, self.context.dotted(original.args[1].value)
        if not isinstance(value, (cst.Name, cst.Attribute)):
            return None
        if tested_class == "torch.nn.Module":
            fact = self.context.observed(value)
            classes = [kind.removeprefix("module:") for kind in (fact.kinds if fact else ()) if kind.startswith("module:")]
        else:
            classes = [tested_class]
        functions = sorted({functional_layers()[name] for name in classes if name in functional_layers()})
        if not functions:
            family = self._family(original.args[1].value, updated.args[1].value)
            if family is not None:
                updated = updated.with_changes(args=[updated.args[0], updated.args[1].with_changes(value=family)])
            return _without_repetition(updated) or (updated if family is not None else None)
        test: cst.BaseExpression = updated
        # Instances of subclasses are still objects in the mirror, so the test of the class stays.
        for function in reversed(functions):
            test = self.context.build(f"{{x}} is {function} or {{test}}", x=updated.args[0].value, test=test)
        return self.context.parenthesise(test)

    def _family(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression | None:
        """The classes of a test with those beside them; None where it asks for no such base class."""
        tests = [element.value for element in original.elements] if isinstance(original, cst.Tuple) else [original]
        classes = [element.value for element in updated.elements] if isinstance(updated, cst.Tuple) else [updated]
        names = [BESIDE.get(self.context.dotted(test), "") for test in tests]
        if not any(names) or len(classes) != len(tests):
            return None
        beside = [self.context.build(name) for name in dict.fromkeys(filter(None, names))]
        return cst.Tuple([cst.Element(cls) for cls in (*classes, *beside)])


def _without_repetition(test: cst.Call) -> cst.Call | None:
    """`isinstance(x, (A, A, B))`, where one class stands for two of torch, → `isinstance(x, (A, B))`."""
    match test.args[1].value:
        case cst.Tuple(elements=elements) as classes:
            first = {cst.Module([]).code_for_node(one.value): one for one in reversed(elements)}
            kept = [one for one in elements if first[cst.Module([]).code_for_node(one.value)] is one]
            if len(kept) == len(elements):
                return None
            inside = classes.with_changes(elements=[one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in kept])
            only = kept[0].value if len(kept) == 1 else inside
            return test.with_changes(args=[test.args[0], test.args[1].with_changes(value=only)])
    return None
