"""Kernels that the repository brings itself (`@triton.jit`, `torch.utils.cpp_extension`): the torch function beside them takes their place."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.custom_kernels import Launches, is_kernel, parameters
from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.repo import FunctionNode
from migrate_agent.tools.rewrite.rules.cleanup.unexercised import with_docstring
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.types import Observed

CODE = "custom-kernel"
_HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef _kernel(x, y, n: tl.constexpr):\n    tl.store(y, tl.load(x))\n\n\n"
_AFTER = (
    "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef _kernel(x, y, n: tl.constexpr):\n    tl.store(y, tl.load(x))\n\n\n"
)


class ReplaceKernelLaunches(Rule):
    """Replace a launch of the repository's own kernel by the torch function beside it: `silu` → `return silu_reference(x)`.

    The function must have the kernel function's name and parameters; `Silu.apply` of an
    `autograd.Function` likewise. Where autograd saw nothing of the kernel, no gradient passes through the
    replacement either. Where there is no such function the launch is a hole that states the observed
    signature. Loading an extension is no hole of its own. Declines where the launch depends on a
    condition: the branch that ran is rewritten.
    """

    KEEP = (
        "def silu_reference(x):\n    return x\n\n\ndef silu(x):\n    return silu_reference(x)\n",
        "def f(x):\n    print(\n        'one '\n        'two {}'.format(x)\n    )\n",
    )
    CHANGE = (
        (
            f"{_HEAD}def copy(x):\n    y = torch.empty_like(x)\n    _kernel[(1,)](x, y, 4)\n    return y\n\n\ndef copy_ref(x):\n    return x * 1\n",
            f"{_AFTER}def copy(x):\n    return jax.lax.stop_gradient(copy_ref(x))\n\n\ndef copy_ref(x):\n    return x * 1\n",
        ),
        (
            f"{_HEAD}def launch(x):\n    y = torch.empty_like(x)\n    _kernel[(1,)](x, y, 4)\n    return y\n\n\ndef fused_copy(x):\n"
            '    """Copies."""\n    return launch(x)\n\n\ndef copy_torch(x):\n    return x * 1\n\n\ndef launch_torch(x):\n    return x * 1\n',
            f"{_AFTER}def launch(x):\n    return jax.lax.stop_gradient(launch_torch(x))\n\n\ndef fused_copy(x):\n"
            '    """Copies."""\n    return jax.lax.stop_gradient(copy_torch(x))\n\n\ndef copy_torch(x):\n    return x * 1\n\n\n'
            "def launch_torch(x):\n    return x * 1\n",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.launches = Launches(context.repo, context.file)

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        name = ".".join(self.context.path)
        function = self.context.file.functions.get(name)
        # A kernel is text in Triton's language: what its names stand for in Python means nothing there.
        if function is not None and is_kernel(function, self.context.file):
            self.context.drop_holes(original.body)
            return original
        if name not in self.launches.by_name or function is None:
            return None
        reference = self.launches.reference(name)
        if not reference:
            return None
        self.context.drop_holes(original.body)
        call = f"{reference}({', '.join(_call_arguments(function))})"
        text = call if self.launches.by_name[name].differentiable else f"jax.lax.stop_gradient({call})"
        self._note_replacement(name, reference)
        body = cst.IndentedBlock([cst.SimpleStatementLine([cst.Return(self.context.build(text))])])
        return updated.with_changes(body=with_docstring(original, body))

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        """`Silu.apply(x)`; and what loads an extension, which nothing needs once its launches are gone."""
        code = cst.Module([]).code_for_node
        match original.func:
            case cst.Attribute(value=owner, attr=cst.Name(value="apply")) if (name := code(owner)) in self.launches.by_name:
                reference = self.launches.reference(name)
                if reference:
                    self._note_replacement(name, reference)
                    return updated.with_changes(func=cst.Name(reference))
        if not self.context.functions and self.launches.loads(_parse_callee(original), self.context.span(original).line):
            reason = f"{cst.Module([]).code_for_node(original.func)} compiles an extension, which has no counterpart in JAX"
            return cst.Call(self.context.helper("NotMigrated"), [cst.Arg(cst.SimpleString(repr(reason)))])
        launch = self.launches.launched(_parse_callee(original)) if self.context.functions else ""
        if launch:
            self.context.hole(original, self._hole_reason(launch), CODE)
        return None

    def _hole_reason(self, launch: str) -> str:
        """What is launched, and what by: the function's parameters and result as they were observed."""
        name = ".".join(self.context.path)
        function = self.context.file.functions.get(name)
        request = f"{name} launches {launch}, and no function of plain torch here has its name and parameters: write it in jax.numpy"
        if function is None:
            return request
        observed = {parameter: _described(self._first_fact(function, parameter)) for parameter in parameters(function)}
        arguments = ", ".join(f"{parameter}: {kind}" if kind else parameter for parameter, kind in observed.items())
        returned = [
            _described(self._fact(node.value)) for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None
        ]
        result = f" -> {returned[0]}" if len(returned) == 1 and returned[0] else ""
        return f"{request}, as {function.name}({arguments}){result}"

    def _first_fact(self, function: FunctionNode, name: str) -> Observed | None:
        """What a parameter was where the function first uses it."""
        uses = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load))
        return next((fact for node in uses if (fact := self._fact(node))), None)

    def _fact(self, node: ast.expr) -> Observed | None:
        return self.context.facts.observed.get(span_of(node, self.context.file.lines))

    def _note_replacement(self, name: str, reference: str) -> None:
        file = self.context.file
        self.context.notes.append(f"{file.file.path}: `{name}` launches {self.launches.by_name[name].text}; `{reference}` takes its place")


def _described(fact: Observed | None) -> str:
    """`float32[2, 5, 24]` of what was one tensor shape all along, else its kind."""
    if fact is None:
        return ""
    if fact.shapes and fact.dtypes:
        return f"{fact.dtypes[0]}{list(fact.shapes[0])}"
    return "" if "tensor" in fact.kinds else "|".join(fact.kinds)


def _call_arguments(function: FunctionNode) -> list[str]:
    """A function's parameters, handed on."""
    positional = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return [*positional, *(f"{argument.arg}={argument.arg}" for argument in function.args.kwonlyargs)]


def _parse_callee(call: cst.Call) -> ast.expr:
    """What is called, as the tables of the repository have it."""
    return ast.parse(f"({cst.Module([]).code_for_node(call.func)})", mode="eval").body  # it may stand on several lines
