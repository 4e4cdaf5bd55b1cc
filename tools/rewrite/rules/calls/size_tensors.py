"""Sizes that travel in tensors to scripted functions."""

from __future__ import annotations

import ast
from types import MappingProxyType

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.scan.size_tensors import size_parameters

MAKERS = MappingProxyType({"torch.IntTensor": "np.int32", "torch.LongTensor": "np.int64", "torch.tensor": "np.int64"})


class KeepSizesInNumpy(Rule):
    """Keep sizes that a scripted function reads out of a tensor in NumPy, where their values are known: `torch.IntTensor([n])` → `np.array([n])`.

    Declines where the numbers are no integers of Python, and where anything else reads the tensor.
    """

    KEEP = ("import numpy as np\n\ndef f(n: int):\n    return np.array([n])\n",)
    CHANGE = (
        (
            "import torch\n\n@torch.jit.script\ndef halves(x, n):\n    size = n[0]\n    return x[:, :size] * x[:, size:]\n\n"
            "def f(x: torch.Tensor, n: int):\n    size = torch.IntTensor([n])\n    return halves(x, size), halves(x, torch.IntTensor([4]))\n",
            "def halves(x, n):\n    size = n[0]\n    return x[:, :size] * x[:, size:]\n\n"
            "def f(x: jax.Array, n: int):\n    size = np.array([n], np.int32)\n    return halves(x, size), halves(x, np.array([4], np.int32))\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        dtype = MAKERS.get(self.context.dotted(original.func))
        if dtype is None or len(original.args) != 1 or not self._holds_integers(original.args[0]) or not self._is_size(original):
            return None
        return self.context.build(f"np.array({{sizes}}, {dtype})", sizes=updated.args[0].value)

    def _holds_integers(self, argument: cst.Arg) -> bool:
        if argument.keyword or argument.star or not isinstance(argument.value, cst.List):
            return False
        return all(isinstance(element, cst.Element) and self._is_integer(element.value) for element in argument.value.elements)

    def _is_integer(self, node: cst.BaseExpression) -> bool:
        fact = self.context.observed(node)
        return isinstance(node, cst.Integer) or (fact is not None and set(fact.kinds) == {"int"})

    def _is_size(self, call: cst.Call) -> bool:
        """Whether what a call makes goes to scripted functions that read sizes of it, and nowhere else."""
        function = self.context.function
        if function is None:
            return False
        span, lines = self.context.span(call), self.context.file.lines
        arguments = [argument for node in walk(function) if isinstance(node, ast.Call) for argument in _size_arguments(self.context, node)]
        if any(span_of(argument, lines) == span for argument in arguments):
            return True
        names = [
            target.id
            for node in walk(function)
            if isinstance(node, ast.Assign) and span_of(node.value, lines) == span
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        uses = [node for node in walk(function) if isinstance(node, ast.Name) and node.id in names]
        loads = [node for node in uses if isinstance(node.ctx, ast.Load)]
        passed = {id(argument) for argument in arguments}
        return len(names) == 1 and len(uses) == len(loads) + 1 and all(id(node) in passed for node in loads)


def _size_arguments(context: Context, call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that hand sizes to a scripted function of the repository."""
    resolved = context.repo.resolve(context.facts.dotted.get(span_of(call.func, context.file.lines), ""))
    function = resolved[0].functions.get(resolved[1]) if resolved else None
    if not isinstance(function, ast.FunctionDef) or any(isinstance(argument, ast.Starred) for argument in call.args):
        return []
    sizes = size_parameters(function)
    plain = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    keywords = [(keyword.arg, keyword.value) for keyword in call.keywords]
    return [value for name, value in (*zip(plain, call.args, strict=False), *keywords) if name in sizes]
