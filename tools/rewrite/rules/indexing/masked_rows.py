"""Rows that a mask selects, which a function reads and writes by index alone, as a mixture of experts does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import FileModel, FunctionNode, dotted_name
from migrate_agent.tools.rewrite.analysis.routing.mixing import may_mix_rows, reduces_rows
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

Selected = tuple[frozenset[Span], frozenset[str]]
NOTHING: Selected = (frozenset(), frozenset())
WRITES = frozenset({"index_add", "index_add_"})


def selected_rows(function: FunctionNode, file: FileModel, facts: Facts, mixes: Callable[[str], bool]) -> Selected:
    """Where such indices are made (the calls), and all names that they have.

    `rows, = torch.where(mask)` is one, if all that is done with `rows` is `x[rows]`, `y.index_add_(0, rows, …)`, `y[rows] = …`, and to ask whether
    there are any; `rows.tolist()` is the same again. Something must be written by them: what is read alone has a shape that depends on values.
    What is read goes nowhere but into what is written, and no row of it may depend on others: `mixes` says of the class of a module whether it may.
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
        whole = all(purposes) and "write" in purposes and len(stores) == len(names)
        if whole and _stay_apart(function, _Rows(file, facts, mixes, names)) and _skips_nothing_else(function, names):
            calls.add(_span(assign.value))
            index_names |= names
    return frozenset(calls), frozenset(index_names)


def selected_here(context: Context) -> Selected:
    """`selected_rows` of the function that is being rewritten, found out once."""
    function = context.function
    if function is None:
        return NOTHING
    cache = context.file.__dict__.setdefault("_selected_rows", {})
    if id(function) not in cache:
        cache[id(function)] = selected_rows(function, context.file, context.facts, may_mix_rows(context.repo, context.cls))
    rows: Selected = cache[id(function)]
    return rows


@dataclass
class _Rows:
    """What is read by some indices, and the names that hold it."""

    file: FileModel
    facts: Facts
    mixes: Callable[[str], bool]
    indices: set[str]
    names: set[str] = field(default_factory=set)

    def holds(self, node: ast.AST) -> bool:
        """Whether rows that were read stand in an expression."""
        return any(
            isinstance(part.ctx, ast.Load) and (part.id in self.names if isinstance(part, ast.Name) else self.is_indexed(part))
            for part in ast.walk(node)
            if isinstance(part, ast.Name | ast.Subscript)
        )

    def is_indexed(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Subscript) and any(
            isinstance(part, ast.Name) and part.id in self.indices for part in ast.walk(node.slice)
        )

    def mixed_by(self, call: ast.Call) -> bool:
        """Whether a call mixes rows, or tells how many there are."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
        fact = self.facts.observed.get(span_of(call.func, self.file.lines))
        modules = [kind.removeprefix("module:") for kind in (fact.kinds if fact is not None else ()) if kind.startswith("module:")]
        counts = name in ("len", "numel", "append") or (name == "size" and not call.args)
        return self.holds(call) and (counts or reduces_rows(call, self.file) or any(map(self.mixes, modules)))


def _stay_apart(function: FunctionNode, rows: _Rows) -> bool:
    """Whether what is read by indices is only computed row by row, and goes nowhere but into what is written by the same indices."""
    statements = sorted((node for node in walk(function) if isinstance(node, ast.stmt)), key=lambda node: node.lineno)
    for node in statements:
        if isinstance(node, ast.If) and _only_skips(node.test, {node.test: node}):
            continue
        parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        inside = [part for part in parts if rows.holds(part)]
        if any(rows.mixed_by(call) for part in inside for call in walk(part) if isinstance(call, ast.Call)):
            return False
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []
        value = getattr(node, "value", None)
        written = isinstance(value, ast.Call) and _writes(value, rows.indices)
        if inside and not written and not all(isinstance(target, ast.Name) or rows.is_indexed(target) for target in targets):
            return False
        changes = (
            isinstance(node, ast.Expr)
            and isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr.endswith("_")
        )
        if inside and not targets and not written and not changes:
            return False
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        if inside and not written:
            rows.names |= names
        elif not isinstance(node, ast.AugAssign):
            rows.names -= names
    return True


def _skips_nothing_else(function: FunctionNode, indices: set[str]) -> bool:
    """Whether a test for rows, which is never passed in the rewrite, leaves out nothing but what is done with them: no name that is read elsewhere."""
    for holder in walk(function):
        body = getattr(holder, "body", None)
        for position, node in enumerate(body if isinstance(body, list) else ()):
            asks = isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id in indices for n in walk(node.test))
            if asks and isinstance(body, list) and not _is_closed(function, body[position + 1 :], indices):
                return False
    return True


def _is_closed(function: FunctionNode, statements: list[ast.stmt], indices: set[str]) -> bool:
    """Whether statements bind no name that is read elsewhere or before, other than what they write by the indices."""
    bound: dict[str, int] = {}
    for node in (part for statement in statements for part in walk(statement)):
        value = getattr(node, "value", None)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in bound:
            return False
        if isinstance(node, ast.Assign | ast.AnnAssign) and not (isinstance(value, ast.Call) and _writes(value, indices)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for target in targets if not isinstance(target, ast.Subscript) for n in walk(target) if isinstance(n, ast.Name)]
            bound |= {name: bound.get(name, node.lineno) for name in names}
    own = {id(n) for statement in statements for n in walk(statement)}
    loads = [n for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in bound]
    return all(id(n) in own and n.lineno > bound[n.id] for n in loads)


def _writes(call: ast.Call, indices: set[str]) -> bool:
    """`out.index_add_(0, rows, …)`"""
    named = isinstance(call.func, ast.Attribute) and call.func.attr in WRITES
    return named and any(isinstance(argument, ast.Name) and argument.id in indices for argument in call.args)


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
