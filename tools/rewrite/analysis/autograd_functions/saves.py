"""What the `forward` of an `autograd.Function` saves for its `backward`.

Torch reads the saved tensors after `forward` has returned, so that in-place changes after
`save_for_backward` count too.
"""

from __future__ import annotations

import ast

from migrate_agent.tools.scan.nodes import walk

SAVE = "save_for_backward"


def movable_save(function: ast.AST) -> ast.Expr | None:
    """The statement `ctx.save_for_backward(x, y)` where it can move in front of the final `return`;
    `None` otherwise.

    It cannot where there is more than one save or return, or where a saved name is rebound in
    between.
    """
    body = function.body if isinstance(function, ast.FunctionDef) else []
    calls = [
        node for node in walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == SAVE
    ]
    saves = [statement for statement in body if isinstance(statement, ast.Expr) and statement.value in calls]
    returns = [node for node in walk(function) if isinstance(node, ast.Return)]
    if len(calls) != 1 or not saves or returns != body[-1:] or not all(isinstance(value, ast.Name) for value in calls[0].args):
        return None
    # `x += 1` changes the saved tensor itself, which a later save sees as well; `x = x + 1` does
    # not.
    updated = {id(node.target) for node in walk(function) if isinstance(node, ast.AugAssign)}
    saved = {value.id for value in calls[0].args if isinstance(value, ast.Name)}
    stores = (node for node in walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in updated)
    return None if any(node.id in saved and node.lineno > saves[0].lineno for node in stores) else saves[0]
