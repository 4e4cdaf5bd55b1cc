"""Rows that a mask selects, which a function reads and writes by index alone, as a mixture of experts does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate_agent.tools.rewrite.analysis.repo import FileModel, FunctionNode, dotted_name
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

NOTHING: tuple[frozenset[Span], frozenset[str]] = (frozenset(), frozenset())
WRITES = frozenset({"index_add", "index_add_"})


def selected_rows(function: FunctionNode, file: FileModel) -> tuple[frozenset[Span], frozenset[str]]:
    """Where such indices are made (the calls), and all names that they have.

    `rows, = torch.where(mask)` is one, if all that is done with `rows` is `x[rows]`, `y.index_add_(0, rows, …)`, `y[rows] = …`, and to ask whether
    there are any; `rows.tolist()` is the same again. Something must be written by them: what is read alone has a shape that depends on values.
    """
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    calls: set[Span] = set()
    index_names: set[str] = set()
    for assign in (node for node in walk(function) if isinstance(node, ast.Assign)):
        names = _unpacked_names(assign, file)
        if not names:
            continue
        names |= {name for name, value in _plain_assignments(function) if _list_source(value) in names}
        uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)]
        purposes = [_purpose(node, parents) for node in uses]
        stores = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Store)]
        # A name that is bound elsewhere too may be something else by then.
        if all(purposes) and "write" in purposes and len(stores) == len(names):
            calls.add(_span(assign.value))
            index_names |= names
    return frozenset(calls), frozenset(index_names)


def selected_here(context: Context) -> tuple[frozenset[Span], frozenset[str]]:
    """`selected_rows` of the function that is being rewritten, found out once."""
    function = context.function
    if function is None:
        return NOTHING
    cache = context.file.__dict__.setdefault("_selected_rows", {})
    if id(function) not in cache:
        cache[id(function)] = selected_rows(function, context.file)
    rows: tuple[frozenset[Span], frozenset[str]] = cache[id(function)]
    return rows


def _unpacked_names(assign: ast.Assign, file: FileModel) -> set[str]:
    """The names that the indices are unpacked into; none where the statement is none of these."""
    call, targets = assign.value, assign.targets
    if len(targets) != 1 or not isinstance(targets[0], ast.Tuple) or not isinstance(call, ast.Call):
        return set()
    by_where = dotted_name(call.func, file) == "torch.where" and len(call.args) == 1 and not call.keywords
    tupled = [k.arg for k in call.keywords if isinstance(k.value, ast.Constant) and k.value.value is True] == ["as_tuple"]
    nonzero = isinstance(call.func, ast.Attribute) and call.func.attr == "nonzero" and tupled and len(call.keywords) == 1
    names = [target.id for target in targets[0].elts if isinstance(target, ast.Name)]
    return set(names) if (by_where or nonzero) and len(names) == len(targets[0].elts) else set()


def _plain_assignments(function: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    for node in walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _list_source(value: ast.expr) -> str:
    """`rows` of `rows.tolist()`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "tolist" and not value.args:
        return value.func.value.id if isinstance(value.func.value, ast.Name) else ""
    return ""


def _purpose(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """`read`, `write` or `asked`; "" for anything else."""
    parent = parents[node]
    above = parents.get(parent, parent)
    if isinstance(parent, ast.Attribute) and parent.attr == "tolist":
        return "read"
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in WRITES:
        return "write" if len(parent.args) > 1 and parent.args[1] is node else ""
    child: ast.AST = node
    if isinstance(parent, ast.Tuple) and isinstance(above, ast.Subscript):
        child, parent = parent, above
    if isinstance(parent, ast.Subscript) and parent.slice is child:
        return "write" if isinstance(parent.ctx, ast.Store) else "read"
    return "asked" if _only_skips(node, parents) else ""


def _only_skips(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether it stands in the test of an `if` that leaves out what there is nothing for."""
    while node in parents:
        above = parents[node]
        if isinstance(above, ast.If):
            return above.test is node and not above.orelse and all(isinstance(step, ast.Continue | ast.Pass) for step in above.body)
        if isinstance(above, ast.stmt):
            return False
        node = above
    return False


def _span(node: ast.expr) -> Span:
    return Span(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)
