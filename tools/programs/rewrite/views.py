"""What each training function of a script sees of it: the script without the insides of the other training functions.

Names of optimizers, of schedulers and of the loss are those of one function. A script that trains a teacher and then a student has two.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import blocks, body, function_of, in_order, method_of


@dataclass(frozen=True)
class View:
    """The script as `function` sees it (`None`: the statements of the file), and the statements of the script for which others stand there."""

    module: cst.Module
    function: cst.CSTNode | None
    origins: Mapping[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)


def views(module: cst.Module) -> list[View]:
    """A view for each function in which `backward()` is called, in the order of the script."""
    order = {statement: number for number, statement in enumerate(in_order(module))}
    rows = [(order[s], function_of(inside)) for block, inside in blocks(module) for s in body(block) if method_of(s)[1] == "backward"]
    functions = list(dict.fromkeys(function for _, function in sorted(rows, key=lambda row: row[0])))
    if len(functions) < 2:
        return [View(module, functions[0] if functions else None)]
    return [_view(module, one, {other for other in functions if other is not None and other is not one}) for one in functions]


def _view(module: cst.Module, function: cst.CSTNode | None, hidden: Set[cst.CSTNode]) -> View:
    origins: dict[cst.CSTNode, cst.CSTNode] = {}

    def without(statement: cst.CSTNode) -> cst.CSTNode:
        """A class without its hidden methods."""
        if not isinstance(statement, cst.ClassDef) or not hidden & set(body(statement.body)):
            return statement
        lines = [one for one in body(statement.body) if one not in hidden]
        new = statement.with_changes(body=statement.body.with_changes(body=lines))
        origins[new] = statement
        return new

    lines = [without(statement) for statement in module.body if statement not in hidden]
    return View(module.with_changes(body=lines), function, origins)
