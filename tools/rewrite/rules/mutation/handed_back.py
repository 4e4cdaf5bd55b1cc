"""Which parameters a function changes in place, and which of them it can hand back with their new values."""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import argument_names
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey
from migrate_agent.tools.rewrite.rules.context import Context


def mutated(context: Context, key: FunctionKey) -> frozenset[str]:
    """The parameters whose array a function changes in place."""
    return context.randomness.mutated.get(key, frozenset()) - context.randomness.written.get(key, frozenset())


def handed_back(context: Context, key: FunctionKey) -> tuple[str, ...]:
    """The parameters that a function changes in place and, since it returns nothing, can return."""
    names, file = mutated(context, key), context.repo.files.get(key[0])
    node = file.functions.get(key[1]) if file else None
    if not isinstance(node, ast.FunctionDef) or node.name in ("forward", "__init__"):
        return ()
    # The function has changed a view that leads back to no parameter: there is no new value to return.
    if names & context.randomness.out_of_reach.get(key, frozenset()):
        return ()
    inner = list(ast.walk(node))
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) or (isinstance(n, ast.Return) and n.value is not None) for n in inner):
        return ()
    return tuple(name for name in argument_names(node) if name in names)
