"""Gives updates that a script writes out by hand an optimizer of torch, so that they are rewritten as any other step.

                                              optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss.backward()                               loss.backward()
for p in model.parameters():           →      optimizer.step()
    p.data.add_(p.grad, alpha=-0.1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.hand_updates import HandUpdate
from migrate_agent.tools.programs.rewrite.spans import ScriptPass


class NamedOptimizers(ScriptPass):
    """One pass over a script. `torch` is the script's name of it, and `line_of` gives the line of a
    node.
    """

    def __init__(self, updates: Sequence[HandUpdate], torch: str, line_of: Callable[[cst.CSTNode], int]) -> None:
        super().__init__()
        self._steps = {one.line: one for one in updates}
        self._made = {one.construction: one for one in updates}
        self._torch, self._line = torch, line_of

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Construct optimizers where their module and rate are there."""
        result = super().on_leave(original_node, updated_node)
        if isinstance(original_node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)) and isinstance(result, cst.BaseStatement):
            return self._constructed(original_node, result)
        return result

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:
        """The loop becomes a step."""
        return self._step(original_node, updated_node)

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        """`with torch.no_grad():` around such a loop goes."""
        return self._step(original_node, updated_node)

    def _step(self, original: cst.For | cst.With, updated: cst.For | cst.With) -> Any:
        update = self._steps.get(self._line(original))
        if update is None:
            return updated
        lines = [f"{update.name}.step()"]
        if update.varies:
            lines.insert(0, f'for group in {update.name}.param_groups:\n    group["lr"] = {update.rate}')
        lines += [f"{update.name}.zero_grad()"] if update.zeroes else []
        first, *rest = map(cst.parse_statement, lines)
        return cst.FlattenSentinel([first.with_changes(leading_lines=updated.leading_lines), *rest])

    def _constructed(self, original: cst.BaseStatement, result: cst.BaseStatement) -> Any:
        """Construct the optimizer after the statement from which on module and rate are there."""
        update = self._made.get(self._line(original))
        if update is None:
            return result
        text = f"{update.name} = {self._torch}.optim.SGD({update.module}.parameters(), lr={update.first})"
        return cst.FlattenSentinel([result, cst.parse_statement(text)])
