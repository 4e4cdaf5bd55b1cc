"""Code that no example ran and that no rule can rewrite: it says so when it is reached, instead of holding the whole class up."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrate_agent.tools.rewrite.rules.cleanup.foreign_imports import ABSENT
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.control_flow.constants import leaves
from migrate_agent.tools.rewrite.rules.rule import Rule

LONGEST = 60
"""Characters of the source that a reason quotes."""


class StubUnexercised(Rule):
    """Replace code with holes that no example ran: a branch, the body of a loop, a statement or a function → `raise NotImplementedError(reason)`, and a note.

    Declines where no file was observed at all, or where anything in the block ran: then the hole stays.
    """

    KEEP = ("def f(x):\n    if x:\n        return x.transpose\n    return 3\n",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._stubs: list[cst.SimpleStatementLine] = []
        self._ends: dict[int, int] = {}
        """A stub's identity → the last line of the statement that it stands for."""

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.If | None:
        if not isinstance(updated, cst.If):
            return None
        body = self._stub_suite(original.body, f"for which `{_text(original.test)}` holds")
        return updated.with_changes(body=body) if body else None

    def leave_Else(self, original: cst.Else, updated: cst.Else) -> cst.Else | None:
        parent = self.context.parent()
        denied = f"for which `{_text(parent.test)}` does not hold" if isinstance(parent, cst.If) else ""
        body = self._stub_suite(original.body, denied)
        return updated.with_changes(body=body) if body else None

    def leave_ExceptHandler(self, original: cst.ExceptHandler, updated: cst.ExceptHandler) -> cst.ExceptHandler | None:
        body = self._stub_suite(original.body)
        return updated.with_changes(body=body) if body else None

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        body = self._stub_suite(original.body, f"that calls {original.name.value}")
        return updated.with_changes(body=with_docstring(original, body)) if body else None

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | None:
        return self._stub_statement(original)

    def leave_With(self, original: cst.With, updated: cst.With) -> cst.SimpleStatementLine | None:
        return self._stub_statement(original)

    def leave_For(self, original: cst.For, updated: cst.For) -> cst.BaseStatement | None:
        stub = self._stub_statement(original)
        body = (
            None
            if stub or not isinstance(updated, cst.For)
            else self._stub_suite(original.body, f"for which `{_text(original.iter)}` is not empty")
        )
        return updated.with_changes(body=body) if body else stub

    def leave_While(self, original: cst.While, updated: cst.While) -> cst.BaseStatement | None:
        stub = self._stub_statement(original)
        body = (
            None
            if stub or not isinstance(updated, cst.While)
            else self._stub_suite(original.body, f"for which `{_text(original.test)}` holds")
        )
        return updated.with_changes(body=body) if body else stub

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock | None:
        """What follows a statement that became a stub, or each branch of which ends and one by a stub, is never reached."""
        at = next((i for i, statement in enumerate(updated.body) if _ends(statement) and self._holds_stub(statement)), None)
        if at is None or at + 1 == len(updated.body):
            return None
        kept = updated.body[: at + 1]
        if len(original.body) == len(updated.body):
            first, last = self.context.span(original.body[at + 1]).line, self.context.span(original.body[-1]).end_line
            if any(first <= line <= last for line in self.context.observed_lines):
                return None
            for statement in original.body[at + 1 :]:
                self.context.drop_holes(statement)
        elif kept[-1] not in self._stubs:
            return None  # another rule changed the block: which statements of the source these are is not known
        elif (end := self._ends.get(id(kept[-1]))) is not None:  # nothing below such a stub ran
            last = self.context.span(original.body[-1]).end_line
            self.context.holes[:] = [hole for hole in self.context.holes if not end < hole.span.line <= last]
        return updated.with_changes(body=kept)

    def _holds_stub(self, statement: cst.BaseStatement) -> bool:
        return any(node in self._stubs for node in _ends_of(statement))

    def _stub_statement(self, original: cst.BaseStatement) -> cst.SimpleStatementLine | None:
        """A statement in the rest of a function after `if …: return`, which was always taken."""
        context = self.context
        parent = context.parent()
        if not context.functions or not isinstance(parent, cst.IndentedBlock) or not context.observed_lines or not self._has_run(parent):
            return None
        span = context.span(original)
        # Only below a `return` that was always taken: elsewhere a hole in code that did not run may be reached all the same.
        before = [statement for statement in parent.body if context.span(statement).end_line < span.line]
        if not any(isinstance(statement, cst.If) and leaves(statement.body) for statement in before):
            return None
        # Something below ran, so the `return` above is not always taken.
        if any(span.line <= line <= context.span(parent.body[-1]).end_line for line in context.observed_lines):
            return None
        stub = self._stub_for_lines(span.line, span.end_line)
        if stub is not None:
            self._stubs.append(stub)
            self._ends[id(stub)] = span.end_line
        return stub

    def _stub_for_lines(self, first: int, last: int, reached: str = "") -> cst.SimpleStatementLine | None:
        """The statement that stands for these lines, where there is a hole in them; the holes go. `reached` says which example gets there."""
        context = self.context
        inside = [hole for hole in context.holes if first <= hole.span.line <= last]
        if not inside:
            return None
        context.holes[:] = [hole for hole in context.holes if hole not in inside]
        absent = next((hole for hole in inside if hole.code == ABSENT), None)
        reason = f"{self._place()} was not exercised: add an [[example]] {reached or 'that reaches it'} ({inside[0].reason})"
        reason = f"{self._place()} cannot be exercised: {absent.reason}" if absent else reason
        context.notes.append(f"{context.file.file.path}:{first}: {reason}")
        statement = cst.parse_statement(f"raise NotImplementedError({reason!r})")
        assert isinstance(statement, cst.SimpleStatementLine)
        return statement

    def _stub_suite(self, suite: cst.BaseSuite, reached: str = "") -> cst.IndentedBlock | None:
        context = self.context
        lines = context.observed_lines
        first, last = self._lines(suite)
        outer = context.functions[0] if context.functions else None
        # The function becomes one stub as a whole, further out.
        if outer is not None and suite is not outer.body and not self._has_run(outer.body):
            return None
        if not (lines or (outer is not None and context.exercised)) or self._has_run(suite):
            return None
        # Whoever constructs and calls the class reaches these.
        if outer is not None and suite is outer.body and outer.name.value in ("__init__", "forward") and context.cls:
            reached = f"of {context.cls.qualname}"
        stub = self._stub_for_lines(first, last, reached)
        if stub is None:
            return None
        self._stubs.append(stub)
        return cst.IndentedBlock([stub])

    def _place(self) -> str:
        """The function at hand, or a part of it where some of it has run."""
        context = self.context
        outer = context.functions[0] if context.functions else None
        name = ".".join(context.path) or context.file.file.path
        return name if outer is not None and not self._has_run(outer.body) else f"this part of {name}"

    def _has_run(self, suite: cst.BaseSuite) -> bool:
        first, last = self._lines(suite)
        return any(first <= line <= last for line in self.context.observed_lines)

    def _lines(self, suite: cst.BaseSuite) -> tuple[int, int]:
        body = suite.body
        spans = [self.context.span(statement) for statement in body]
        return (spans[0].line, spans[-1].end_line) if spans else (0, -1)


def _ends(statement: cst.BaseStatement) -> bool:
    """Whether nothing after a statement is reached: it raises, returns, or is a branch that does in each arm."""
    if isinstance(statement, cst.SimpleStatementLine):
        return bool(statement.body) and isinstance(statement.body[-1], (cst.Raise, cst.Return))
    if not isinstance(statement, cst.If) or statement.orelse is None:
        return False
    arms = (statement.body, statement.orelse.body if isinstance(statement.orelse, cst.Else) else cst.IndentedBlock([statement.orelse]))
    return all(isinstance(arm, cst.IndentedBlock) and bool(arm.body) and _ends(arm.body[-1]) for arm in arms)


def _ends_of(statement: cst.BaseStatement) -> Iterator[cst.BaseStatement]:
    """The statements that end the arms of one that ends (`_ends`)."""
    if not isinstance(statement, cst.If):
        yield statement
        return
    orelse = statement.orelse
    for arm in (statement.body, orelse.body if isinstance(orelse, cst.Else) else None):
        if isinstance(arm, cst.IndentedBlock):
            yield from _ends_of(arm.body[-1])
    if isinstance(orelse, cst.If):
        yield from _ends_of(orelse)


def _text(node: cst.BaseExpression) -> str:
    """The source of an expression on one line, cut where it is long."""
    text = " ".join(cst.Module([]).code_for_node(node).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 2] + " …"


def with_docstring(function: cst.FunctionDef, body: cst.IndentedBlock) -> cst.IndentedBlock:
    """A body that replaces a function's, with the docstring that decorators may read."""
    first = function.body.body[0] if isinstance(function.body, cst.IndentedBlock) and function.body.body else None
    if function.get_docstring() is None or not isinstance(first, cst.SimpleStatementLine):
        return body
    return body.with_changes(body=[first, *body.body])
