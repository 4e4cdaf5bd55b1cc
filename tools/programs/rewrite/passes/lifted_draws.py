"""Draws in the middle of a step's statements stand before them: inside a compiled step nothing moves torch's own stream on.

with torch.no_grad():                                 drawn = torch.randn_like(action)
    noise = torch.randn_like(action) * sigma          with torch.no_grad():
    target = critic(state, actor(state) + noise)  →       noise = drawn * sigma
loss = mse(critic(state, action), target)                 target = critic(state, actor(state) + noise)
loss.backward()                                       loss = mse(critic(state, action), target)
                                                      loss.backward()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.programs.rewrite.core import body, method_of, tainted
from migrate_agent.tools.programs.rewrite.names import FreeNames, Imports, again, bound, gives, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

DRAWS = frozenset({"torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.rand_like", "torch.randn_like"})
NO_GRADIENT = frozenset({"torch.no_grad", "torch.inference_mode"})
LATER = m.Lambda() | m.IfExp() | m.BooleanOperation() | m.ListComp() | m.SetComp() | m.DictComp() | m.GeneratorExp()
"""Expressions whose parts may be evaluated never, or several times."""


class LiftedDraws(ScriptPass):
    """One pass over a script. `modules` are the names that were seen to hold modules."""

    def __init__(self, module: cst.Module, imports: Imports, modules: frozenset[str]) -> None:
        super().__init__()
        self._imports, self._modules, self._free = imports, modules, FreeNames(text_of(module))

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        """Draw before the statements of a step."""
        lines = self._lifted(updated_node.body)
        return updated_node if lines is None else updated_node.with_changes(body=lines)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """The same for a step at the top of the file."""
        lines = self._lifted(updated_node.body)
        return updated_node if lines is None else updated_node.with_changes(body=lines)

    def _lifted(self, lines: Sequence[Any]) -> list[Any] | None:
        """The lines of a block with draws of their own; `None` where nothing changes."""
        last = max((i for i, line in enumerate(lines) if method_of(line)[1] == "backward"), default=0)
        steps = tainted(lines[:last], self._modules)
        result, computed = list[Any](), set[str]()
        for line in lines:
            drawn, new = self._taken_out(line, computed) if line in steps else ([], line)
            computed |= set(gives(line)) if line in steps else set()
            if drawn:
                drawn[0] = drawn[0].with_changes(leading_lines=line.leading_lines)
                new = self._changed(new, leading_lines=())
            result += [*drawn, new]
        return result if len(result) > len(lines) else None

    def _taken_out(self, line: Any, late: set[str]) -> tuple[list[Any], Any]:
        """The statements that draw for a line, and the line with names for what they give; `late` are names that nothing before it may read."""
        if isinstance(line, cst.With) and all(self._is_no_gradient(item.item) for item in line.items):
            late, drawn, lines = set(late), list[Any](), list[Any](body(line.body))
            for i, one in enumerate(lines):
                more, lines[i] = self._taken_out(one, late)
                drawn += more
                late |= set(bound(one))
                if self._draws(lines[i]):
                    # What is drawn after it stays after it.
                    break
            return drawn, self._changed(line, body=self._changed(line.body, body=lines)) if drawn else line
        draws = self._draws(line) if isinstance(line, cst.SimpleStatementLine) else []
        if not draws or any(late & set(read(node)) for node in draws) or any(self._draws(part) for part in m.findall(line, LATER)):
            return [], line
        names = {node: self._free.pick("drawn", "drawn_values") for node in draws}
        values = [cst.Assign([cst.AssignTarget(cst.Name(name))], again(self.origin, node)) for node, name in names.items()]
        return [cst.SimpleStatementLine([value]) for value in values], line.visit(_Named(names, self.origin))

    def _draws(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        return [one for one in m.findall(node, m.Call()) if isinstance(one, cst.Call) and self._imports.of(one.func) in DRAWS]

    def _is_no_gradient(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self._imports.of(node.func) in NO_GRADIENT

    def _changed(self, node: Any, **changes: Any) -> Any:
        new = node.with_changes(**changes)
        self.origin[new] = self.origin.get(node, node)
        return new


class _Named(cst.CSTTransformer):
    """Puts names in place of expressions. `origin` goes on for all other nodes."""

    def __init__(self, names: dict[cst.CSTNode, str], origin: dict[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__()
        self._names, self._origin = names, origin

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """The name of an expression; which old node each new one stands for."""
        source = self._origin.get(original_node, original_node)
        name = self._names.get(original_node)
        result: Any = cst.Name(name) if name is not None else super().on_leave(original_node, updated_node)
        self._origin[result] = source
        return result
