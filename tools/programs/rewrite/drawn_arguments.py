"""Draws of functions that a loss is computed by become their arguments: inside a compiled step nothing moves torch's own stream on.

def penalty(D, real, fake):                           def penalty(D, real, fake, alpha):
    alpha = torch.rand(real.size(0), 1)                   mixed = alpha * real + (1 - alpha) * fake
    mixed = alpha * real + (1 - alpha) * fake     →       …
    …
                                                      alpha = torch.rand(real.size(0), 1)
gp = penalty(D, real, fake)                           gp = penalty(D, real, fake, alpha)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import body, call_of, method_of
from migrate_agent.tools.programs.rewrite.names import FreeNames, Imports, bound, code, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

DRAWS = frozenset({"torch.rand", "torch.randn", "torch.randint", "torch.rand_like", "torch.randn_like"})


@dataclass(frozen=True)
class _Drawn:
    """A function of the file: its parameters, and the statements of its body that draw, each for one name."""

    parameters: tuple[str, ...]
    statements: tuple[cst.SimpleStatementLine, ...]


class DrawnArguments(ScriptPass):
    """One pass over a script. `origin` says of each new expression at a call which one of the function it was."""

    def __init__(self, module: cst.Module, imports: Imports) -> None:
        super().__init__()
        self._functions = dict(_functions(module, imports))
        self._free = FreeNames(text_of(module))
        self._inside = 0

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        """The draws become parameters."""
        drawn = self._functions.get(original_node.name.value)
        if drawn is None:
            return updated_node
        lines = [new for old, new in zip(original_node.body.body, updated_node.body.body, strict=True) if old not in drawn.statements]
        names = [cst.Param(cst.Name(name)) for statement in drawn.statements for name in bound(statement)]
        parameters = updated_node.params.with_changes(params=[*updated_node.params.params, *names])
        return updated_node.with_changes(params=parameters, body=updated_node.body.with_changes(body=lines))

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """Draw before a call what the function drew."""
        call = call_of(original_node)
        drawn = self._functions.get(code(call.func)) if call is not None else None
        if call is None or drawn is None:
            return updated_node
        values = {name: argument.value for name, argument in zip(drawn.parameters, call.args, strict=True)}
        lines, names = [], []
        for statement in drawn.statements:
            (name,) = bound(statement)
            here = name if name not in read(original_node) else self._free.pick(f"{name}_drawn")
            names.append(here)
            lines.append(self._line(statement, here, values))
        lines[0] = lines[0].with_changes(leading_lines=updated_node.leading_lines)
        return cst.FlattenSentinel([*lines, _with_arguments(updated_node, names).with_changes(leading_lines=())])

    def _line(self, statement: cst.SimpleStatementLine, name: str, values: Mapping[str, cst.BaseExpression]) -> cst.SimpleStatementLine:
        new = statement.deep_clone().visit(_Substitute(values, self.origin))
        assert isinstance(new, cst.SimpleStatementLine)
        small = new.body[0]
        assert isinstance(small, cst.Assign)
        return new.with_changes(body=[small.with_changes(targets=[cst.AssignTarget(cst.Name(name))])])


def _with_arguments(line: cst.SimpleStatementLine, names: list[str]) -> cst.SimpleStatementLine:
    small: Any = line.body[0]
    call = small.value
    plain = [argument.with_changes(comma=cst.MaybeSentinel.DEFAULT) for argument in call.args]
    return line.with_changes(
        body=[small.with_changes(value=call.with_changes(args=[*plain, *(cst.Arg(cst.Name(name)) for name in names)]))]
    )


class _Substitute(cst.CSTTransformer):
    def __init__(self, values: Mapping[str, cst.BaseExpression], origin: dict[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__()
        self._values, self._origin = values, origin

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """The argument in place of the parameter."""
        value = self._values.get(updated_node.value)
        if value is None:
            return updated_node
        new = value.deep_clone()
        self._origin[new] = value
        return new

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        """The name of an attribute is no name."""
        return updated_node.with_changes(attr=original_node.attr)


def _functions(module: cst.Module, imports: Imports) -> list[tuple[str, _Drawn]]:
    """The functions of a file that draw by statements of their own, of what they are handed, and that are called with plain arguments alone."""
    rows = []
    for function in (s for s in module.body if isinstance(s, cst.FunctionDef)):
        parameters = tuple(parameter.name.value for parameter in function.params.params)
        lines = list(body(function.body))
        chosen = [s for s in lines if isinstance(s, cst.SimpleStatementLine) and _draws(s, imports)]
        reads = {name for statement in chosen for name in read(statement)} - set(imports.dotted)
        taken = {name for statement in lines for name in bound(statement)} & {*parameters}
        plain = parameters and not function.params.star_kwarg and not isinstance(function.params.star_arg, cst.Param)
        if chosen and plain and reads <= set(parameters) - taken and _called_plainly(module, function.name.value, parameters):
            rows.append((function.name.value, _Drawn(parameters, tuple(chosen))))
    return rows


def _draws(statement: cst.SimpleStatementLine, imports: Imports) -> bool:
    call = call_of(statement)
    return call is not None and imports.of(call.func) in DRAWS and len(bound(statement)) == 1


def _called_plainly(module: cst.Module, name: str, parameters: tuple[str, ...]) -> bool:
    """Whether all mentions of a function are statements `x = f(a, b)` of names, whose gradients something takes."""
    mentions = [0]
    calls: list[cst.Call] = []

    class Mentions(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:
            mentions[0] += node.value == name

        def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
            call = call_of(node)
            if call is not None and code(call.func) == name and len(bound(node)) == 1 and method_of(node)[1] == "":
                calls.append(call)

    module.visit(Mentions())
    plain = all(
        len(call.args) == len(parameters) and all(a.keyword is None and not a.star and isinstance(a.value, cst.Name) for a in call.args)
        for call in calls
    )
    # The definition is one mention.
    return bool(calls) and plain and mentions[0] == len(calls) + 1
