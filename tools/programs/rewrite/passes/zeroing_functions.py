"""Functions that only set gradients to zero stand where they are called: a step is understood by what it does in one place.

def reset_grad():
    d_optimizer.zero_grad()          d_optimizer.zero_grad()
    g_optimizer.zero_grad()     →    g_optimizer.zero_grad()
                                     loss.backward()
reset_grad()
loss.backward()
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import body, call_of, in_order, method_of
from migrate_agent.tools.programs.rewrite.names import SELF, bound, code, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass


class ZeroingFunctions(ScriptPass):
    """One pass over a script."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__()
        self._functions = dict(_functions(module))

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> Any:
        """Nothing calls it any more."""
        return cst.RemoveFromParent() if original_node in self._functions.values() else updated_node

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """`reset_grad()` → its statements."""
        function = self._functions.get(_called(original_node))
        if function is None:
            return updated_node
        lines = [line.deep_clone() for line in _statements(function)]
        first = lines[0].with_changes(leading_lines=updated_node.leading_lines)
        return cst.FlattenSentinel([first, *(line.with_changes(leading_lines=()) for line in lines[1:])])


def _functions(module: cst.Module) -> list[tuple[str, cst.FunctionDef]]:
    """The functions without arguments, and methods of `self` alone, that only set gradients to zero and are only called; each by how it is called."""
    nodes = list(ast.walk(ast.parse(text_of(module))))
    statements = list(in_order(module))
    bases = {name for node in statements if isinstance(node, cst.ClassDef) for base in node.bases for name in read(base.value)}
    rows = []
    for owner, function in _defined(module):
        name, parameters = function.name.value, [one.name.value for one in function.params.params]
        plain = parameters == ([SELF] if owner else []) and not function.decorators and not function.params.star_kwarg
        zeros = all(method_of(line)[1] == "zero_grad" for line in _statements(function)) and _statements(function)
        call = f"{SELF}.{name}" if owner else name
        calls = sum(_called(one) == call for one in statements)
        texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
        mentions = sum(name in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", "")) for node in nodes) - 1
        if (
            plain
            and zeros
            and calls == mentions > 0
            and name not in texts
            and not (_hidden(module, function) if not owner else owner in bases)
        ):
            rows.append((call, function))
    return rows


def _hidden(module: cst.Module, function: cst.FunctionDef) -> bool:
    """Whether a name that a function reads means something else in another function."""
    others = [node for node in in_order(module) if isinstance(node, cst.FunctionDef) and function not in body(node.body)]
    own = {name for one in others for line in body(one.body) for name in bound(line)} | {
        p.name.value for one in others for p in one.params.params
    }
    return bool(own & set(read(function)))


def _defined(module: cst.Module) -> list[tuple[str, cst.FunctionDef]]:
    """The functions of a file, and of its classes and functions, each with the name of its class, or ""."""
    rows: list[tuple[str, cst.FunctionDef]] = []
    for node in in_order(module):
        for one in body(node.body) if isinstance(node, (cst.ClassDef, cst.FunctionDef)) else ():
            if isinstance(one, cst.FunctionDef):
                rows.append((node.name.value if isinstance(node, cst.ClassDef) else "", one))
    return [*(("", one) for one in module.body if isinstance(one, cst.FunctionDef)), *rows]


def _statements(function: cst.FunctionDef) -> Sequence[Any]:
    """Its statements, without what is said of it."""
    lines = list(body(function.body))
    small = lines[0].body[0] if lines and isinstance(lines[0], cst.SimpleStatementLine) and len(lines[0].body) == 1 else None
    return lines[1:] if isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString) else lines


def _called(statement: cst.CSTNode) -> str:
    """What a statement calls without arguments, as text; ""."""
    call = call_of(statement)
    return code(call.func) if call is not None and not call.args and not bound(statement) else ""
