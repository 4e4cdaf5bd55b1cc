"""`locals()` at the start of a function, as constructors use it to pass their arguments on."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.repo import FunctionNode
from migrate_agent.tools.rewrite.rules.rule import Rule

BINDERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.ExceptHandler)
NESTED = (cst.For, cst.While, cst.Lambda, cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp)


class WriteOutLocals(Rule):
    """Write out the parameters: `kwargs = dict(locals())` → `kwargs = dict(self=self, dim=dim)`.

    The `rngs` that a constructor gains must not be among them. `__class__`, which Python adds in methods that
    use `super()`, is left out. Declines (the hole stays) where other names may be bound by then.
    """

    KEEP = ("def f(x):\n    return dict(x=x)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d, *, p=0.1, **more):\n        super().__init__()\n"
            "        options = dict(locals())\n        self.fc = nn.Linear(options['d'], d)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, p=0.1, rngs: nnx.Rngs, **more):\n"
            "        options = dict(self=self, d=d, p=p, more=more)\n        self.fc = Linear(options['d'], d, rngs=rngs)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if isinstance(original.func, cst.Name) and original.func.value == "dict" and len(original.args) == 1:
            inner = updated.args[0].value
            of_locals = _is_locals_call(original.args[0].value) and not original.args[0].star and not original.args[0].keyword
            return inner if of_locals and not _is_locals_call(inner) else None
        function = self.context.function
        if (
            not self.context.repo.names_torch
            or not _is_locals_call(original)
            or "locals" in self.context.taken
            or function is None
            or not self._only_parameters(original, function)
        ):
            return None
        arguments = function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        names += [a.arg for a in (arguments.vararg, arguments.kwarg) if a]
        self.context.drop_holes(original)
        return cst.parse_expression(f"dict({', '.join(f'{name}={name}' for name in names)})")

    def _only_parameters(self, call: cst.Call, function: FunctionNode) -> bool:
        """Whether no statement in front of this one binds a name."""
        line = self.context.span(call).line
        inside = self.context.stack[max(i for i, n in enumerate(self.context.stack) if isinstance(n, cst.FunctionDef)) :]
        # In a comprehension `locals()` is another dictionary, and in a loop it grows.
        if any(isinstance(node, NESTED) for node in inside):
            return False
        before = [
            n for n in ast.walk(function) if n is not function and getattr(n, "lineno", line) < line and n not in function.decorator_list
        ]
        stored = any(isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) for n in before)
        return not stored and not any(isinstance(n, BINDERS) for n in before)


def _is_locals_call(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "locals" and not node.args
