"""Methods of a base class that are called through its name: `nn.LayerNorm.__init__(self, d)`, `Base.forward(self, x)`."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrate_agent.tools.rewrite.analysis.repo import MODULE_BASES
from migrate_agent.tools.rewrite.rules.apply_tables import keyword, tidy
from migrate_agent.tools.rewrite.rules.classes.train_overrides import train_override
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.helpers import rngs_of
from migrate_agent.tools.rewrite.tables.registry import layers

METHODS = {"__init__": "__init__", "forward": "__call__"}
MODES = ("train", "eval")
"""Methods that all layers of torch have of `nn.Module`."""


class CallBasesByName(Rule):
    """Call methods of a base by its name: `nn.LayerNorm.__init__(self, d)` → `LayerNorm.__init__(self, d)`, `Base.forward(self, x)` → `Base.__call__(self, x)`.

    `nn.Module.__init__(self)` is removed; `nn.Linear.train(self, mode)` → `super().train(mode)`. Declines outside of methods of module classes, and where the
    first argument is not `self`.
    """

    KEEP = ("class Plain(dict):\n    def __init__(self, x):\n        dict.__init__(self)\n        self.x = x\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass Norm(nn.LayerNorm):\n    def __init__(self, d):\n        nn.LayerNorm.__init__(self, d, eps=1e-6)\n\n"
            "    def forward(self, x):\n        return nn.LayerNorm.forward(self, x + 1)\n",
            "class Norm(LayerNorm):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        LayerNorm.__init__(self, d, eps=1e-6, rngs=rngs)\n\n"
            "    def __call__(self, x):\n        return LayerNorm.__call__(self, x + 1)\n",
        ),
        (
            "from torch import nn\n\nclass A(nn.Module):\n    def __init__(self, d):\n        nn.Module.__init__(self)\n        self.d = d\n\n"
            "class B(A):\n    def __init__(self, d):\n        A.__init__(self, d)\n",
            "class A(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.d = d\n\n\n"
            "class B(A):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        A.__init__(self, d, rngs=rngs)\n",
        ),
        (
            "from torch import nn\n\nclass A(nn.Linear):\n    def train(self, mode=True):\n        nn.Linear.train(self, mode)\n"
            "        self.merged = not mode\n\nclass B(nn.Dropout):\n    def train(self, mode=True):\n        nn.Module.train(self, False)\n",
            "class A(OwnTrain, Linear):\n    def train(self, mode=True):\n        super().train(mode)\n        self.merged = not mode\n\n\n"
            "class B(Dropout):\n    def train(self, mode=True):\n        super().eval()\n",
        ),
    )

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        call = original.body[0].value if len(original.body) == 1 and isinstance(original.body[0], cst.Expr) else None
        # `nnx.Module` has no constructor that need be called.
        if isinstance(call, cst.Call) and self._base_class(call) in MODULE_BASES and self._method_name(call) == "__init__":
            return cst.RemoveFromParent()
        return None

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        base, method = self._base_class(original), self._method_name(original)
        if base and method in MODES and self._is_torchs(base, method):
            return self._mode_call(method, updated.args[1:])
        if not base or method not in METHODS or base in MODULE_BASES or not isinstance(updated.func, cst.Attribute):
            return None
        owner = context.helper(layers()[base].vendored) if base in layers() else updated.func.value
        arguments = list(updated.args)
        has_rngs = any(a.keyword and a.keyword.value == "rngs" for a in arguments)
        if method == "__init__" and not has_rngs and (base not in layers() or rngs_of(layers()[base].vendored) == "required"):
            spread = [a for a in arguments if a.star == "**"]
            plain = [a for a in arguments if a.star != "**"]
            arguments = tidy([*plain, keyword("rngs", cst.Name("rngs")), *spread])
        return cst.Call(cst.Attribute(owner, cst.Name(METHODS[method])), arguments)

    def _is_torchs(self, base: str, method: str) -> bool:
        """Whether this method of a base is that of `nn.Module`, and the one that `super()` finds in the class at hand."""
        repo, model = self.context.repo, self.context.cls
        own = any(method in above.methods for above in repo.ancestors(model) if above is not model) if model else True
        return (base in MODULE_BASES or base in layers()) and not own

    def _mode_call(self, method: str, arguments: Sequence[cst.Arg]) -> cst.BaseExpression:
        """The call on `super()`. NNX takes no mode, but for modules with a `train` of their own."""
        context, above = self.context, cst.Call(cst.Name("super"))
        own = context.cls is not None and train_override(context.repo, context.cls) is not None
        if own or not arguments:
            return cst.Call(cst.Attribute(above, cst.Name(method)), arguments)
        mode = arguments[0].value
        if isinstance(mode, cst.Name) and mode.value in ("True", "False"):
            return cst.Call(cst.Attribute(above, cst.Name("train" if mode.value == "True" else "eval")))
        return context.parenthesise(context.build("super().train() if {mode} else super().eval()", mode=mode))

    def _base_class(self, call: cst.Call) -> str:
        """The dotted base class whose method is called on `self`, or ""."""
        context = self.context
        if not isinstance(call.func, cst.Attribute) or not call.args or not context.is_self(call.args[0].value):
            return ""
        if not (context.cls and context.repo.is_module_class(context.cls)):
            return ""
        dotted = context.dotted(call.func.value)
        return dotted if dotted and context.repo.is_module(dotted) else ""

    def _method_name(self, call: cst.Call) -> str:
        return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
