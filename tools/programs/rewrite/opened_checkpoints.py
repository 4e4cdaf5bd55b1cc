"""Checkpoints that a script hands to torch as open files: the rewrite's are folders, so that it needs their paths.

with open("model.pt", "wb") as f:      →      torch.save(model, "model.pt")
    torch.save(model, f)
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

CALLS = ("torch.save", "torch.load")


def opened_path(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The path in `open(path, "rb")` or `open(path, "wb")`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name) or node.func.value != "open" or len(node.args) != 2:
        return None
    path, mode = (argument.value for argument in node.args)
    return path if isinstance(mode, cst.SimpleString) and mode.evaluated_value in ("rb", "wb") else None


def without_open(statement: cst.With, imports: Imports, origin: dict[cst.CSTNode, cst.CSTNode]) -> list[cst.BaseStatement] | None:
    """The statements of a block that opens a file for torch alone, with its path in the file's place; `None` for any other block. `origin` says of
    nodes which ones they were.
    """
    item = statement.items[0]
    path = opened_path(item.item)
    name = item.asname.name if item.asname is not None else None
    if len(statement.items) != 1 or path is None or not isinstance(name, cst.Name):
        return None
    put = _Put(name.value, path, imports)
    new = statement.body.visit(put)
    if put.others or not isinstance(new, cst.IndentedBlock):
        return None
    origin.update({node: origin.get(old, old) for node, old in put.origin.items()})
    lines: list[Any] = list(new.body)
    if lines and hasattr(lines[0], "leading_lines"):
        lines[0] = lines[0].with_changes(leading_lines=[*statement.leading_lines, *lines[0].leading_lines])
    return lines


class _Put(ScriptPass):
    """Puts a path in the place of a file, where torch gets it; `others` is how often it is used elsewhere."""

    def __init__(self, name: str, path: cst.BaseExpression, imports: Imports) -> None:
        super().__init__()
        self._name, self._path, self._imports = name, path, imports
        self.others = 0

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        """Count each use."""
        self.others += original_node.value == self._name
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        """The path goes where torch is handed the file."""
        if self._imports.of(original_node.func) not in CALLS:
            return updated_node
        arguments = []
        for argument in updated_node.args:
            if isinstance(argument.value, cst.Name) and argument.value.value == self._name:
                self.others -= 1
                argument = argument.with_changes(value=self._path.deep_clone())
            arguments.append(argument)
        return updated_node.with_changes(args=arguments)
