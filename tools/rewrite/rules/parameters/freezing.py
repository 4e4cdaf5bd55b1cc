"""Parameters that are kept but not trained: `requires_grad = False`."""

from __future__ import annotations

import ast
from typing import NamedTuple

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.parameter_writes import argument_names
from migrate_agent.tools.rewrite.rules.parameters.variables import PARAMETERS, variable
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import layers
from migrate_agent.tools.rewrite.tables.templates import fill


class FreezeParameters(Rule):
    """Freeze parameters: `for p in net.parameters(): p.requires_grad = False` → `freeze(net)`; of one parameter → `self.w = frozen(self.w)`.

    `net.requires_grad_(False)` likewise. What is frozen and thawed in one block, to write to it, is neither.
    Declines (a hole) where a condition or a computed value decides.
    """

    KEEP = ("class Plain:\n    def f(self, x):\n        x.requires_grad = False\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.a = nn.Linear(d, d)\n"
            "        for p in self.a.parameters():\n            p.requires_grad = False\n        self.b = nn.Linear(d, d)\n"
            "        self.b.requires_grad_(False)\n        self.c = nn.Linear(d, d)\n        self.c.weight.requires_grad = False\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n        freeze(self.a)\n"
            "        self.b = Linear(d, d, rngs=rngs)\n        freeze(self.b)\n        self.c = Linear(d, d, rngs=rngs)\n"
            "        self.c.kernel = frozen(self.c.kernel)\n",
        ),
        (
            "import torch\nfrom torch import nn\n\ndef table(d):\n    w = nn.Parameter(torch.ones(d))\n    w.requires_grad = False\n    return w\n",
            "def table(d):\n    w = nnx.Param(jnp.ones(d))\n    w = frozen(w)\n    return w\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.a = nn.Linear(d, d)\n"
            "        self.a.weight.requires_grad = False\n        self.a.weight.mul_(2)\n        self.a.weight.requires_grad = True\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n"
            "        self.a.weight = self.a.weight * 2\n",
        ),
    )

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.SimpleStatementLine | None:
        """A loop that does nothing but freeze each parameter."""
        walked = original.iter
        if not (isinstance(walked, cst.Call) and isinstance(walked.func, cst.Attribute) and not walked.args):
            return None
        body = original.body.body
        line = body[0] if len(body) == 1 else None
        statement = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
        target = self._frozen_target(statement)
        if target is None or walked.func.attr.value not in ("parameters", "named_parameters"):
            return None
        names = [e.value for e in original.target.elements] if isinstance(original.target, cst.Tuple) else [original.target]
        last = names[-1]
        if not (isinstance(last, cst.Name) and isinstance(target, cst.Name) and last.value == target.value):
            return None
        # `p.requires_grad = False` alone is a hole, since `p` is only the loop's name for many parameters.
        first, end = self.context.span(original).line, self.context.span(original).end_line
        self.context.holes[:] = [hole for hole in self.context.holes if not first <= hole.span.line <= end]
        call = self.context.build("vendored.freeze({module})", module=walked.func.value)
        return cst.SimpleStatementLine([cst.Expr(call)], leading_lines=updated.leading_lines)

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        target = original.targets[0].target
        if not (isinstance(target, cst.Attribute) and target.attr.value == "requires_grad" and len(original.targets) == 1):
            return None
        if self._is_thawed_again(target):
            return None
        return self._freeze_variable(original, target.value, original.value)

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        """Both ends of a block's while without gradients."""
        flag = _gradient_flag(original)
        return cst.RemoveFromParent() if flag is not None and self._is_thawed_again(flag.target) else None

    def _is_thawed_again(self, target: cst.Attribute) -> bool:
        """Whether the block sets this `requires_grad` to `False` and then to `True`, and never else."""
        block = next(node for node in reversed(self.context.stack) if isinstance(node, cst.IndentedBlock | cst.Module))
        flags = [flag for flag in map(_gradient_flag, block.body) if flag is not None and flag.target.deep_equals(target)]
        # Torch lets nobody write to a leaf that requires a gradient; arrays need no such permission.
        return len(flags) == 2 and _is_name(flags[0].value, "False") and _is_name(flags[1].value, "True")

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.Assign | None:
        call = original.value
        if not (isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "requires_grad_"):
            return None
        if self.context.is_module(call.func.value):
            return None
        return self._freeze_variable(original, call.func.value, call.args[0].value if call.args else cst.Name("True"))

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """`net.requires_grad_(False)` of a module."""
        func, new = original.func, updated.func
        if not (isinstance(func, cst.Attribute) and func.attr.value == "requires_grad_" and isinstance(new, cst.Attribute)):
            return None
        if not self.context.is_module(func.value) or not original.args:
            return None
        if not _is_name(original.args[0].value, "False"):
            if not _is_name(original.args[0].value, "True"):
                self.context.hole(original, "whether a module is trained depends on a value", "frozen")
            return None
        return self.context.build("vendored.freeze({module})", module=new.value)

    def _freeze_variable(self, statement: cst.BaseSmallStatement, node: cst.BaseExpression, value: cst.BaseExpression) -> cst.Assign | None:
        """One parameter that is frozen."""
        target = self._variable_of(node)
        if not _is_name(value, "False") or target is None:
            fact = self.context.observed(node)
            if fact is not None and set(fact.kinds) <= {"parameter"} and not _is_name(value, "True"):
                self.context.hole(statement, "whether a parameter is trained is decided one by one", "frozen")
            return None
        return cst.Assign([cst.AssignTarget(target)], self.context.build("vendored.frozen({x})", x=target.deep_clone()))

    def _variable_of(self, node: cst.BaseExpression) -> cst.Attribute | cst.Name | None:
        """The attribute, or the name of a parameter that this function makes, that holds the variable behind `node`."""
        if isinstance(node, cst.Name) and self._is_made_here(node):
            return node
        return variable_behind(self, node)

    def _is_made_here(self, node: cst.Name) -> bool:
        """Whether all that binds this local name are calls of `nn.Parameter`."""
        context = self.context
        function = context.function
        if function is None or node.value in argument_names(function):
            return False
        stores = sum(isinstance(n, ast.Name) and n.id == node.value and isinstance(n.ctx, ast.Store) for n in ast.walk(function))
        parameter_count = 0
        for child in ast.walk(function):
            if isinstance(child, ast.Assign) and isinstance(child.value, ast.Call) and len(child.targets) == 1:
                target = child.targets[0]
                dotted = context.facts.dotted.get(span_of(child.value.func, context.file.lines), "")
                parameter_count += isinstance(target, ast.Name) and target.id == node.value and dotted in PARAMETERS
        return 0 < stores == parameter_count

    def _frozen_target(self, statement: cst.CSTNode | None) -> cst.BaseExpression | None:
        """What a statement freezes, or `None`."""
        match statement:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(value=node, attr=cst.Name("requires_grad")))], value=cst.Name("False")
            ):
                return node
            case cst.Expr(
                value=cst.Call(func=cst.Attribute(value=node, attr=cst.Name("requires_grad_")), args=[cst.Arg(value=cst.Name("False"))])
            ):
                return node
        return None


class _Flag(NamedTuple):
    """`x.requires_grad`, and what a statement sets it to."""

    target: cst.Attribute
    value: cst.BaseExpression


def _gradient_flag(line: cst.BaseStatement | cst.BaseSmallStatement) -> _Flag | None:
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name("requires_grad")) as target)], value=value)]
        ):
            return _Flag(target, value)
    return None


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def variable_behind(rule: Rule, node: cst.BaseExpression) -> cst.Attribute | None:
    """The attribute that holds the variable of a module's own parameter (`self.w`) or of a layer's (`layer.weight` → `layer.kernel`)."""
    if not isinstance(node, cst.Attribute):
        return None
    if variable(rule, node):
        return node
    fact = rule.context.observed(node.value)
    templates = {layers()[k].params.get(node.attr.value, "") for kind in fact.kinds if (k := kind[7:]) in layers()} if fact else set()
    template = templates.pop() if len(templates) == 1 else ""
    attribute = fill(template, {"self": node.value}) if template else None
    return attribute if isinstance(attribute, cst.Attribute) else None
