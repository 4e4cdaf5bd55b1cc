"""What a method prints beside the optimizer that it constructs: the lines move to where the method is called, with what they are computed by.

print(f"{len(decay)} decayed tensors")      →      decay = [p for n, p in model.named_parameters() if p.dim() >= 2]
                                                   print(f"{len(decay)} decayed tensors")
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence

from migrate_agent.tools.programs.rewrite.names import unparse

OPTIONS = frozenset({"fused", "foreach", "capturable", "differentiable", "maximize"})
"""What every optimizer of today's torch takes, and older ones did not: scripts ask for it by the signature."""


def printed_lines(method: ast.FunctionDef, values: Mapping[str, ast.expr], receiver: str, whole: bool) -> list[str]:
    """The statements, with `receiver` for the method's object and `values` for its parameters. None where one needs what is not known at the call.

    `whole` says that the optimizer has all parameters of the object, so that none is left out as not trained.
    """
    chosen = _slice(method.body)
    known = {name for statement in chosen for name in _bound(statement)} | set(values) | {"self"}
    if any(name not in known and not hasattr(builtins, name) for one in map(_Constants().visit, chosen) for name in _free(one)):
        return []
    put = _Put({**values, "self": ast.parse(receiver, mode="eval").body}, whole)
    statements = [ast.fix_missing_locations(put.visit(_Constants().visit(one))) for one in chosen]
    if not whole and any(isinstance(node, ast.Attribute) and node.attr == "requires_grad" for one in statements for node in ast.walk(one)):
        return []
    return [unparse(one) for one in _without_constants(statements) if not _is_copy(one)]


def _slice(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that print, and the assignments of names that they need."""
    needed: set[str] = set()
    chosen: list[ast.stmt] = []
    for statement in reversed(statements):
        names = _bound(statement)
        assigns = isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets)
        if _prints(statement) or (assigns and names & needed):
            needed = (needed - names) | _free(statement)
            chosen.insert(0, statement)
    return chosen


def _prints(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def _bound(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _free(node: ast.AST) -> set[str]:
    """Names that a statement reads, without those of its comprehensions."""
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    inner = {
        one.id
        for part in ast.walk(node)
        if isinstance(part, ast.comprehension)
        for one in ast.walk(part.target)
        if isinstance(one, ast.Name)
    }
    return {one.id for one in names if isinstance(one.ctx, ast.Load)} - inner


class _Constants(ast.NodeTransformer):
    """`"fused" in inspect.signature(torch.optim.AdamW).parameters` → `True`."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """What is known of every version of torch."""
        asked = node.left.value if isinstance(node.left, ast.Constant) else None
        signature = ast.unparse(node.comparators[0])
        known = len(node.ops) == 1 and isinstance(node.ops[0], ast.In) and asked in OPTIONS
        return ast.Constant(True) if known and "signature(" in signature and signature.endswith(".parameters") else node


class _Put(ast.NodeTransformer):
    """Puts expressions in place of names, and takes conditions out that hold for every parameter."""

    def __init__(self, values: Mapping[str, ast.expr], whole: bool) -> None:
        self._values, self._whole = values, whole

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The value of a parameter of the method."""
        return self._values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Without `if p.requires_grad`."""
        if self._whole:
            node.ifs = [test for test in node.ifs if not (isinstance(test, ast.Attribute) and test.attr == "requires_grad")]
        self.generic_visit(node)
        return node


def _without_constants(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements with names of constants, which are bound once, replaced by these."""
    names = [name for one in statements for name in _bound(one)]
    values = {
        target.id: one.value
        for one in statements
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant)
        for target in one.targets
        if isinstance(target, ast.Name) and names.count(target.id) == 1
    }
    put = _Put(values, False)
    return [_Known().visit(put.visit(one)) for one in statements if not (_bound(one) and _bound(one) <= values.keys())]


class _Known(ast.NodeTransformer):
    """`True and x` → `x`."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Without what holds anyhow."""
        self.generic_visit(node)
        if isinstance(node.op, ast.And):
            node.values = [one for one in node.values if not (isinstance(one, ast.Constant) and one.value is True)] or [ast.Constant(True)]
        return node.values[0] if len(node.values) == 1 else node


def _is_copy(statement: ast.stmt) -> bool:
    """Whether a statement is `rows = {k: v for k, v in rows.items()}`."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(value, ast.DictComp) or len(value.generators) != 1 or value.generators[0].ifs:
        return False
    pair = f"({ast.unparse(value.key)}, {ast.unparse(value.value)})"
    target, rows = ast.unparse(value.generators[0].target), ast.unparse(value.generators[0].iter)
    return target in (pair, pair[1:-1]) and _bound(statement) == {rows.removesuffix(".items()")} and rows.endswith(".items()")
