"""Code in a forward pass that tells people about tensors: prints, log lines, warnings and assertions."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.rule import Rule

LOGGING = frozenset({"debug", "info", "warning", "warn", "error", "critical", "log", "exception"})
ABOUT = frozenset({"shape", "dtype", "ndim", "device", "requires_grad", "is_cuda"})
"""Attributes of a tensor that are known while tracing."""
ASKING = frozenset({"size", "dim", "numel", "ndimension"})
PLAIN = frozenset({"isinstance", "type", "len", "id"})


class DropPrintsOfValues(Rule):
    """Remove prints and log lines of tensor values: `print(x.mean())`, `logger.info(f"{x.sum().item()}")` → nothing, with a note.

    A value is not there while JAX traces; `jax.debug.print` shows it. A branch on tensors that only prints is
    removed as well. `torch._assert(c, m)` → `assert c, m`. Declines for shapes and dtypes, which are there.
    """

    KEEP = ("def f(x, log):\n    print(x)\n    log.info('%s', x)\n",)
    CHANGE = (
        (
            "import torch\n\ndef f(x: torch.Tensor):\n    print('mean', x.mean())\n    print(x.shape)\n    if x.sum() > 0:\n        print('positive')\n"
            "    torch._assert(x.dim() == 2, 'a matrix')\n    return x\n",
            "def f(x: jax.Array):\n    print(x.shape)\n    assert x.ndim == 2, 'a matrix'\n    return x\n",
        ),
    )

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel | None:
        statement = original.body[0] if len(original.body) == 1 else None
        call = statement.value if isinstance(statement, cst.Expr) else None
        if not isinstance(call, cst.Call) or self.context.constructing:
            return None
        if self.context.dotted(call.func) == "torch._assert":
            return self._replace_assertion(original, call, updated)
        if not self._reports(call) or not self._shows_values(call):
            return None
        self._drop_with_note(original, "what is told about tensor values was dropped")
        return cst.RemoveFromParent()

    def leave_If(self, original: cst.If, updated: cst.If) -> cst.RemovalSentinel | None:
        if not updated.body.body and original.body.body and updated.orelse is None and not isinstance(self.context.parent(), cst.If):
            # Nothing is left in the branch, but a call in its test may do something.
            return cst.RemoveFromParent() if isinstance(updated.test, (cst.Name, cst.Attribute)) else None
        span = self.context.span(original.test)
        open_ = any(hole.code == "tensor-branch" and hole.span == span for hole in self.context.holes)
        if not open_ or original.orelse is not None or isinstance(self.context.parent(), cst.If):
            return None
        for line in original.body.body:
            only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
            if not (isinstance(only, cst.Expr) and isinstance(only.value, cst.Call) and self._reports(only.value)):
                return None
        self._drop_with_note(original, "what is told about tensor values was dropped")
        return cst.RemoveFromParent()

    def _replace_assertion(
        self, original: cst.SimpleStatementLine, call: cst.Call, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel | None:
        small = updated.body[0] if updated.body else None
        if not (isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) and 1 <= len(small.value.args) <= 2):
            return None
        if is_tensor(self.context.observed(call.args[0].value)):
            self._drop_with_note(original, "an assertion on tensor values was dropped")
            return cst.RemoveFromParent()
        self._drop_with_note(original, "")
        values = [argument.value for argument in small.value.args]
        return updated.with_changes(body=[cst.Assert(values[0], values[1] if len(values) > 1 else None)])

    def _drop_with_note(self, node: cst.CSTNode, note: str) -> None:
        """Holes inside go with the code; people are told."""
        context, span = self.context, self.context.span(node)
        context.holes[:] = [hole for hole in context.holes if not span.line <= hole.span.line <= span.end_line]
        if note:
            context.notes.append(f"{context.file.file.path}:{span.line}: {note}")

    def _reports(self, call: cst.Call) -> bool:
        if isinstance(call.func, cst.Name):
            return call.func.value == "print" or self.context.dotted(call.func) == "warnings.warn"
        if not isinstance(call.func, cst.Attribute):
            return False
        if self.context.dotted(call.func) == "warnings.warn":
            return True
        fact = self.context.observed(call.func.value)
        logger = fact is not None and all(kind.startswith("object:logging.") for kind in fact.kinds)
        return call.func.attr.value in LOGGING and (logger or self.context.dotted(call.func.value) == "logging")

    def _shows_values(self, call: cst.Call) -> bool:
        """Whether an argument shows what is in a tensor."""
        finder = _Values(self)
        for argument in call.args:
            argument.visit(finder)
        return finder.found


class _Values(cst.CSTVisitor):
    """Looks for tensors of which more is asked than shape and dtype."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.context, self.found = rule.context, False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return node.attr.value not in ABOUT and self._note_tensor(node)

    def visit_Call(self, node: cst.Call) -> bool:
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in ASKING:
            return False
        if isinstance(node.func, cst.Name) and node.func.value in PLAIN:
            return False
        return self._note_tensor(node)

    def visit_Name(self, node: cst.Name) -> bool:
        return self._note_tensor(node)

    def visit_Subscript(self, node: cst.Subscript) -> bool:
        return self._note_tensor(node)

    def _note_tensor(self, node: cst.BaseExpression) -> bool:
        self.found |= is_tensor(self.context.observed(node))
        return True
