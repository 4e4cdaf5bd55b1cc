"""Branches of a script that an accelerator of torch's alone takes go, and their conditions with them: the rewrite is one for all devices.

if device == "cuda":                             →      net = net.eval()
    net = torch.nn.DataParallel(net)
else:
    net = net.eval()
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import body
from migrate_agent.tools.programs.rewrite.names import text_of
from migrate_agent.tools.programs.rewrite.spans import Positions, ScriptPass, span_of
from migrate_agent.tools.scan.accelerators import needs_cuda
from migrate_agent.tools.types import Observed, Span


class AcceleratorBranches(ScriptPass):
    """One pass over a script. `notes` are for the reader."""

    def __init__(self, module: cst.Module, positions: Positions, observed: Mapping[Span, Observed]) -> None:
        super().__init__()
        self._tree = ast.parse(text_of(module))
        self._choices = {node.lineno: node for node in ast.walk(self._tree) if isinstance(node, ast.If)}
        self._ran = {line for span in observed for line in range(span.line, span.end_line + 1)}
        self._positions = positions
        self._inner: set[cst.CSTNode] = set()
        """The choices that an `elif` stands for."""
        self.notes: list[str] = []

    def visit_If(self, node: cst.If) -> None:
        """Note what is an `elif`."""
        if isinstance(node.orelse, cst.If):
            self._inner.add(node.orelse)

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> Any:
        """The side that other devices take stands for the choice."""
        choice = self._choices.get(span_of(self._positions[original_node]).line)
        if choice is None or not _only_looks(choice.test):
            return updated_node
        if self._goes(choice, choice.body, True):
            rest = updated_node.orelse
        elif self._goes(choice, choice.orelse, False):
            rest = cst.Else(updated_node.body)
        else:
            return updated_node
        self.notes.append(f"line {choice.lineno}: left out, since it asks for an accelerator of torch's: {ast.unparse(choice.test)}")
        if original_node in self._inner:
            return rest if rest is not None else cst.RemoveFromParent()
        if rest is None:
            return cst.RemoveFromParent()
        if isinstance(rest, cst.If):
            return rest.with_changes(leading_lines=updated_node.leading_lines)
        return cst.FlattenSentinel(self._lines(updated_node, rest))

    def _goes(self, choice: ast.If, block: Sequence[ast.stmt], value: bool) -> bool:
        """Whether a block needs an accelerator, and is known not to have run: the choice was reached, and no call of the block was."""
        calls = [node for statement in block for node in ast.walk(statement) if isinstance(node, ast.Call)]
        return (
            bool(calls)
            and needs_cuda(self._tree, choice.test, value)
            and choice.test.lineno in self._ran
            and not any(call.lineno in self._ran for call in calls)
        )

    def _lines(self, choice: cst.If, rest: cst.Else) -> list[Any]:
        lines: list[Any] = list(body(rest.body))
        if lines and hasattr(lines[0], "leading_lines"):
            first = lines[0].with_changes(leading_lines=[*choice.leading_lines, *lines[0].leading_lines])
            self.origin[first] = self.origin.get(lines[0], lines[0])
            lines[0] = first
        return lines


def _only_looks(test: ast.expr) -> bool:
    """Whether asking a condition changes nothing: it calls torch, `str` and methods of texts alone."""
    calls = [ast.unparse(node.func) for node in ast.walk(test) if isinstance(node, ast.Call)]
    return all(call.startswith("torch.") or call == "str" or call.endswith(".startswith") for call in calls)
