"""Names that the original itself does not define: on lines that no example reached, and in messages of assertions that held."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Set
from functools import cached_property
from itertools import pairwise

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.symbols import global_names


class RefuseUndefinedNames(Rule):
    """Refuse names that the file neither defines nor imports: `sim = einsum(q, k)` → a hole, which `StubUnexercised` turns into an error.

    Declines where the file was not observed, or where anything ran on the statement's lines: the name then stands
    where it is not read. A condition or a loop that would read it becomes the error that it ends with: `elif kind == "log":` →
    `else: raise NotImplementedError(...)`. An annotation of an assignment in a function is dropped. In the message of an assertion the name is written as
    text: `f"one of {KIND}"` → `f"one of KIND"`.
    """

    KEEP = ("def f(x):\n    return g(x)\n",)
    CHANGE = (
        (
            "class A:\n    def f(self, data):\n        self.data: loader.Data = data\n        return self.data\n",
            "class A:\n    def f(self, data):\n        self.data = data\n        return self.data\n",
        ),
        (
            "KINDS = {'exp': 1}\n\ndef f(kind):\n    assert kind in KINDS, f'{kind} is none of {KIND.keys()}'\n    return KINDS[kind]\n",
            "KINDS = {'exp': 1}\n\ndef f(kind):\n    assert kind in KINDS, f'{kind} is none of KIND.keys()'\n    return KINDS[kind]\n",
        ),
        (
            "KINDS = {'exp': 1}\n\ndef f(kind):\n    assert kind in KINDS, f'none of {KIND.keys()}'\n    assert kind, KIND\n    return KINDS[kind]\n",
            "KINDS = {'exp': 1}\n\ndef f(kind):\n    assert kind in KINDS, 'none of KIND.keys()'\n    assert kind, 'KIND'\n    return KINDS[kind]\n",
        ),
    )

    def leave_Name(self, original: cst.Name, updated: cst.Name) -> None:
        context, parent = self.context, self.context.parent()
        if original.value not in self._unknown_names or not context.functions or not context.observed_lines:
            return
        named = (isinstance(parent, cst.Attribute) and parent.attr is original) or (
            isinstance(parent, cst.Arg) and parent.keyword is original
        )
        if named or any(isinstance(node, cst.Annotation) for node in context.stack) or self._is_bound(original.value):
            return
        if any(isinstance(node, cst.Assert) and node.msg is inner for node, inner in pairwise([*context.stack, original])):
            return
        statement = next((node for node in reversed(context.stack) if isinstance(node, cst.SimpleStatementLine)), None)
        span = context.span(statement) if statement else None
        if span and not any(span.line <= line <= span.end_line for line in context.observed_lines):
            context.hole(original, f"{original.value} is not defined in the original either", "undefined-name")

    def leave_AnnAssign(self, original: cst.AnnAssign, updated: cst.AnnAssign) -> cst.Assign | None:
        """`self.data: loader.Data = data` in a function, which never reads the annotation: an assignment."""
        read = _Read()
        original.annotation.annotation.visit(read)
        if updated.value is None or not self.context.functions:
            return None
        if any(name in self._unknown_names and not self._is_bound(name) for name in read.names):
            return cst.Assign([cst.AssignTarget(updated.target)], updated.value, updated.semicolon)
        return None

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.CSTNode | None:
        error = self._error_of(original, original.test)
        parent = self.context.parent()
        if error is None or not (isinstance(parent, cst.If) and parent.orelse is original):
            return error
        return cst.Else(cst.IndentedBlock([error]), leading_lines=updated.leading_lines)

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.CSTNode | None:
        return self._error_of(original, original.iter)

    def _error_of(self, statement: cst.CSTNode, first: cst.BaseExpression) -> cst.SimpleStatementLine | None:
        """The error of a statement that begins with an expression which reads a name that is not there; None where it may run."""
        context, span = self.context, self.context.span(statement)
        if (
            not context.functions
            or not context.observed_lines
            or any(span.line <= line <= span.end_line for line in context.observed_lines)
        ):
            return None
        read = _Read()
        first.visit(read)
        name = next((name for name in read.names if name in self._unknown_names and not self._is_bound(name)), None)
        if name is None:
            return None
        context.holes[:] = [hole for hole in context.holes if not span.line <= hole.span.line <= span.end_line]
        return cst.ensure_type(
            cst.parse_statement(f'raise NotImplementedError("{name} is not defined in the original either")\n'), cst.SimpleStatementLine
        )

    def leave_Assert(self, original: cst.Assert, updated: cst.Assert) -> cst.Assert | None:
        """An assertion that held read no part of its message."""
        if original.msg is None or updated.msg is None:
            return None
        undefined = {name for name in self._unknown_names & _names(original.msg) if not self._is_bound(name)}
        if not undefined:
            return None
        message = updated.msg.visit(_AsText(undefined))
        if not isinstance(message, cst.BaseExpression) or undefined & _names(message):
            message = cst.SimpleString(repr(cst.Module([]).code_for_node(original.msg)))
        return updated.with_changes(msg=message)

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> None:
        """What stands where no error can take its place stays as it is; it is noted later."""
        if len(self.context.functions) == 1:
            self.context.holes[:] = [hole for hole in self.context.holes if hole.code != "undefined-name"]

    def _is_bound(self, name: str) -> bool:
        """Whether the outermost function around binds the name."""
        path = self.context.path
        function = self.context.file.functions.get(".".join(path[: len(path) - len(self.context.functions) + 1]))
        return function is None or any(
            (isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)) or (isinstance(n, ast.arg) and n.arg == name)
            for n in ast.walk(function)
        )

    @cached_property
    def _unknown_names(self) -> frozenset[str]:
        """Global names that the file reads, and that nothing there can have bound."""
        file = self.context.file
        # A star import from outside may bring any name.
        if any(star not in self.context.repo.modules for star in file.stars):
            return frozenset()
        names = global_names(file.text) - file.top_names - file.bindings.keys() - set(dir(builtins))
        return frozenset(name for name in names if not name.startswith("__"))


def _names(node: cst.CSTNode) -> frozenset[str]:
    return frozenset(name.value for name in m.findall(node, m.Name()) if isinstance(name, cst.Name))


class _Read(cst.CSTVisitor):
    """The names that an expression reads in any case, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.names.append(node.value)

    def visit_Attribute_attr(self, node: cst.Attribute) -> None:
        self._before = len(self.names)

    def leave_Attribute_attr(self, node: cst.Attribute) -> None:
        del self.names[self._before :]

    def visit_Arg_keyword(self, node: cst.Arg) -> None:
        self._before = len(self.names)

    def leave_Arg_keyword(self, node: cst.Arg) -> None:
        del self.names[self._before :]

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> bool:
        node.left.visit(self)
        return False

    def visit_IfExp(self, node: cst.IfExp) -> bool:
        node.test.visit(self)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_ListComp(self, node: cst.ListComp) -> bool:
        return False

    def visit_GeneratorExp(self, node: cst.GeneratorExp) -> bool:
        return False

    def visit_SetComp(self, node: cst.SetComp) -> bool:
        return False

    def visit_DictComp(self, node: cst.DictComp) -> bool:
        return False


class _AsText(cst.CSTTransformer):
    """Writes what reads one of these names as text, in an f-string or as a whole."""

    def __init__(self, names: Set[str]) -> None:
        self.names = names

    def leave_FormattedStringExpression(
        self, original: cst.FormattedStringExpression, updated: cst.FormattedStringExpression
    ) -> cst.BaseFormattedStringContent:
        if not self.names & _names(original.expression):
            return updated
        code = cst.Module([]).code_for_node(original.expression)
        return cst.FormattedStringText(code.replace("{", "{{").replace("}", "}}"))

    def leave_FormattedString(self, original: cst.FormattedString, updated: cst.FormattedString) -> cst.BaseExpression:
        if not self.names & _names(original) or not all(isinstance(part, cst.FormattedStringText) for part in updated.parts):
            return updated
        text = "".join(part.value for part in updated.parts if isinstance(part, cst.FormattedStringText))
        start = updated.start.translate({ord("f"): None, ord("F"): None})
        return cst.SimpleString(f"{start}{text.replace('{{', '{').replace('}}', '}')}{updated.end}", updated.lpar, updated.rpar)
