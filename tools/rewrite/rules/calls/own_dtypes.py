"""Tensors that a function makes in a dtype of their own, whatever that of its arguments."""

from __future__ import annotations

import ast

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.scan.nodes import walk

FRESH = frozenset(f"torch.{name}" for name in "FloatTensor cuda.FloatTensor Tensor zeros ones empty full rand randn linspace eye".split())


def has_own_dtype(context: Context, node: cst.BaseExpression) -> bool:
    """Whether an original expression reads a local name that is assigned a new tensor of floats, or what is made of one, without a `dtype`.

    What torch changes in place by it keeps its dtype, and a sum of arrays is of the wider one.
    """
    names = {name.value for name in m.findall(node, m.Name()) if isinstance(name, cst.Name)}
    function = context.function
    if function is None or not names:
        return False
    bound = [statement for statement in walk(function) if isinstance(statement, ast.Assign) and _binds(statement) in names]
    return any(_is_fresh(context, part) for statement in bound for part in walk(statement.value) if isinstance(part, ast.Call))


def _binds(statement: ast.Assign) -> str:
    match statement.targets:
        case [ast.Name(id=name)]:
            return name
    return ""


def _is_fresh(context: Context, call: ast.Call) -> bool:
    dotted = context.facts.dotted.get(span_of(call.func, context.file.lines), "")
    return dotted in FRESH and not any(keyword.arg == "dtype" for keyword in call.keywords)
