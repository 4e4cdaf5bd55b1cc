"""Code that no example ran and that no rule can rewrite: it says so when it is reached, instead of holding the whole class up."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rule


class StubUnexercised(Rule):
    """A branch or function with holes in it, on whose lines nothing ran while the examples did → `raise NotImplementedError(reason)`, and a note.

    Declines where the file was not observed at all, or where anything in the block ran: then the hole stays.
    """

    ORDER = 99
    KEEP = ("def f(x):\n    if x:\n        return x.transpose\n    return 3\n",)

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.If | None:
        if not isinstance(updated, cst.If):
            return None
        body = self._stub(original.body)
        return updated.with_changes(body=body) if body else None

    def leave_Else(self, original: cst.Else, updated: cst.Else) -> cst.Else | None:
        body = self._stub(original.body)
        return updated.with_changes(body=body) if body else None

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        if len(self.context.functions) != 1:
            return None
        body = self._stub(original.body)
        return updated.with_changes(body=with_docstring(original, body)) if body else None

    def _stub(self, suite: cst.BaseSuite) -> cst.IndentedBlock | None:
        context = self.context
        lines = context.observed_lines
        first, last = self._lines(suite)
        outer = context.functions[0] if context.functions else None
        if outer is not None and suite is not outer.body and not self._ran(outer.body):
            return None
        inside = [hole for hole in context.holes if first <= hole.span.line <= last]
        if not inside or not lines or self._ran(suite):
            return None
        context.holes[:] = [hole for hole in context.holes if hole not in inside]
        reason = f"not migrated, since no example runs it: {inside[0].reason}"
        context.notes.append(f"{context.file.file.path}:{first}: {reason}")
        return cst.IndentedBlock([cst.parse_statement(f"raise NotImplementedError({reason!r})")])

    def _ran(self, suite: cst.BaseSuite) -> bool:
        first, last = self._lines(suite)
        return any(first <= line <= last for line in self.context.observed_lines)

    def _lines(self, suite: cst.BaseSuite) -> tuple[int, int]:
        body = suite.body
        spans = [self.context.span(statement) for statement in body]
        return (spans[0].line, spans[-1].end_line) if spans else (0, -1)


def with_docstring(function: cst.FunctionDef, body: cst.IndentedBlock) -> cst.IndentedBlock:
    """A body that replaces a function's, with the docstring that decorators may read."""
    first = function.body.body[0] if isinstance(function.body, cst.IndentedBlock) and function.body.body else None
    if function.get_docstring() is None or not isinstance(first, cst.SimpleStatementLine):
        return body
    return body.with_changes(body=[first, *body.body])
