"""Attributes that code hangs on tensors for others to find: hints for an optimiser, misspelt flags."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

KNOWN = frozenset({"data", "grad", "requires_grad", "names", "real", "imag", "retains_grad"})
"""Attributes of a tensor that mean something when they are set."""


class DropTensorMarks(Rule):
    """Drop attributes of tensors that no module reads: `self.w._optim = {"lr": 0.0}` and `setattr(p, "_no_decay", True)` → nothing.

    An array takes no attributes. A note names what an optimiser of the repository may look for. Declines (a
    hole) where a function that a module reaches reads the attribute.
    """

    KEEP = ("class Plain:\n    def f(self, x):\n        x._optim = 1\n        return x\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        pe = torch.zeros(d)\n        pe.require_grad = False\n        self.w = nn.Parameter(pe)\n"
            "        self.w._no_decay = True\n        setattr(self.w, '_optim', {'lr': 0.1})\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        pe = jnp.zeros(d)\n        self.w = nnx.Param(pe)\n",
        ),
    )

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        match original.body:
            case [cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=owner, attr=cst.Name(value=name)))])]:
                pass
            case [
                cst.Expr(value=cst.Call(func=cst.Name("setattr"), args=[cst.Arg(value=owner), cst.Arg(value=cst.SimpleString() as key), _]))
            ]:
                name = key.raw_value
            case _:
                return None
        fact = self.context.observed(owner)
        if name in KNOWN or name.startswith("__") or fact is None or not is_tensor(fact) or "none" in fact.kinds:
            return None
        if self._is_read(name):
            self.context.hole(original, f"{name} is kept on a tensor and read again: an array takes no attributes", "unsupported")
            return None
        line = self.context.span(original).line
        self.context.notes.append(f"{self.context.file.file.path}:{line}: .{name} of a tensor is not kept: tell the optimiser by the name")
        return cst.RemoveFromParent()

    def _is_read(self, name: str) -> bool:
        """Whether a function that a module reaches reads an attribute of this name, or looks it up."""
        for path, function in self.context.randomness.live:
            node = self.context.repo.files[path].functions.get(function)
            for inner in walk(node) if node is not None else ():
                if isinstance(inner, ast.Attribute) and inner.attr == name and isinstance(inner.ctx, ast.Load):
                    return True
                looked_up = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id in ("getattr", "hasattr")
                if looked_up and any(isinstance(one, ast.Constant) and one.value == name for one in inner.args):  # type: ignore[attr-defined]
                    return True
        return False
