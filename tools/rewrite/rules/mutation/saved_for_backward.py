"""What an autograd function saves for its backward pass, and changes in place afterwards."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.autograd_functions.saves import SAVE, movable_save
from migrate_agent.tools.rewrite.rules.calls.torch_references import FUNCTION_BASES
from migrate_agent.tools.rewrite.rules.rule import Rule


class SaveForBackwardLast(Rule):
    """Save changed tensors last: `ctx.save_for_backward(x, y)` → at the end of `forward`, where `y` is changed in place after it.

    Torch saves what `y` is then. Whether it can be done is decided where `y` is changed: see
    `analysis/autograd_functions/saves.py`. Declines without a note from there.
    """

    KEEP = ("def f(ctx, x):\n    ctx.save_for_backward(x)\n    return x\n",)
    CHANGE = (
        (
            "import torch\n\nclass Square(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x: torch.Tensor, s):\n        y = x * x\n"
            "        ctx.save_for_backward(x, y)\n        y.mul_(s)\n        return y\n\n    @staticmethod\n    def backward(ctx, g):\n"
            "        x, y = ctx.saved_tensors\n        return g * x * y, None\n",
            "class Square(AutogradFunction):\n    @staticmethod\n    def forward(ctx, x: jax.Array, s):\n        y = x * x\n        y = y * s\n"
            "        ctx.save_for_backward(x, y)\n        return y\n\n    @staticmethod\n    def backward(ctx, g):\n"
            "        x, y = ctx.saved_tensors\n        return g * x * y, None\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        context = self.context
        path = ".".join(context.path)
        function = context.file.functions.get(path)
        if path not in context.saved_last or function is None or movable_save(function) is None:
            return None
        body = list(updated.body.body)
        index = next(i for i, statement in enumerate(body) if _saves(statement))
        # The last statement is the only `return`: `movable_save` has seen to that.
        body.insert(-1, body.pop(index))
        return updated.with_changes(body=updated.body.with_changes(body=body))


class ReadSavedTensors(Rule):
    """Read saved tensors by the name that PyTorch kept: `ctx.saved_variables` → `ctx.saved_tensors`."""

    KEEP = ("def f(ctx):\n    return ctx.saved_tensors\n", "def f(saver):\n    return saver.saved_variables\n")
    CHANGE = (
        (
            "import torch\n\nclass Square(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n"
            "        return x * x\n\n    @staticmethod\n    def backward(ctx, g):\n        x, = ctx.saved_variables\n        return 2 * g * x\n",
            "class Square(AutogradFunction):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n"
            "        return x * x\n\n    @staticmethod\n    def backward(ctx, g):\n        x, = ctx.saved_tensors\n        return 2 * g * x\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.Attribute | None:
        cls = self.context.cls
        if original.attr.value != "saved_variables" or cls is None or not set(FUNCTION_BASES) & set(self.context.repo.bases(cls)):
            return None
        return updated.with_changes(attr=cst.Name("saved_tensors"))


def _saves(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name))))]):
            return name == SAVE
    return False
