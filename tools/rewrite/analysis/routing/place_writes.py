"""Statements that end what is followed of places: writes by their indices, and counts of how many there are."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.analysis.routing.place_expressions import ELEMENTWISE, WRITES, PlaceExpressions
from migrate_agent.tools.rewrite.analysis.routing.place_values import Kind, PlaceValue, Unfit, Write, index_parts, is_full
from migrate_agent.tools.scan.nodes import walk


@dataclass
class PlaceWrites(PlaceExpressions):
    """Checks what statements write, and knows which of them do nothing where there are no places."""

    closed: set[int] = field(default_factory=set)
    """Statements that write by indices, or count places."""
    loops: list[ast.stmt] = field(default_factory=list)
    """The loops around the statement at hand."""

    def store(self, target: ast.Subscript, value: PlaceValue | None, node: ast.stmt) -> None:
        """`out[places] = rows`, `out[offset : offset + n] = rows`, `rows[:, 0] = number`"""
        array, (first, *rest) = self.value(target.value), index_parts(target)
        index = None if isinstance(first, ast.Slice) else self.value(first)
        is_plain = array is None and is_tensor(self.fact(target.value))
        if is_plain and self._is_by_places(index, rest, value):
            self.closed.add(id(node))
        elif is_plain and not rest and (write := self._next_places(first, value)) is not None:
            self.result.writes[self.span(target)] = write
            self.closed.add(id(node))
        elif array is not None and array.kind == Kind.ROWS and value in (None, array) and is_full(first):
            for part in rest:
                self.nothing(part)
        elif array is not None or value is not None:
            raise Unfit(array, value, index)
        else:
            self.nothing(target.slice)

    def _is_by_places(self, index: PlaceValue | None, rest: Sequence[ast.expr], value: PlaceValue | None) -> bool:
        """Whether rows of the places, or what is the same for all, is written by their indices."""
        if index is None or index.kind != Kind.LIST or not all(map(is_full, rest)):
            return False
        return value in (None, PlaceValue(Kind.ROWS, index.selection))

    def _next_places(self, index: ast.expr, rows: PlaceValue | None) -> Write | None:
        """`offset : offset + n` for as many places as there are rows."""
        if rows is None or rows.kind != Kind.ROWS:
            return None
        match index:
            case ast.Slice(lower=ast.Name(id=name), upper=ast.BinOp(left=ast.Name(id=other), op=ast.Add(), right=count), step=None) if (
                name == other and self.depth == 0
            ):
                number, offset = self.value(count), self.values.get(name)
                if number == PlaceValue(Kind.COUNT, rows.selection) and (offset is None or offset.kind == Kind.COUNT):
                    return Write(name, self.indices(rows))
        return None

    def augment(self, node: ast.AugAssign) -> None:
        """`offset += n`, `rows *= number`, `out[places] += rows`"""
        value, target = self.value(node.value), node.target
        if isinstance(target, ast.Name):
            before = self.values.get(target.id)
            counts = value is not None and value.kind == Kind.COUNT and isinstance(node.op, ast.Add)
            if counts and (before is None or before.kind == Kind.COUNT):
                self.values[target.id] = PlaceValue(Kind.COUNT, None)
                self.closed.add(id(node))
            elif before is not None and before.kind in (Kind.ROWS, Kind.TURNED):
                self.pointwise([(target, before), (node.value, value)])
            elif before is not None or value is not None:
                raise Unfit(before, value)
        elif isinstance(target, ast.Subscript):
            if not isinstance(node.op, ast.Add) and (value is not None or self.held(target)):
                raise Unfit(value, *self.held(target))
            self.store(target, value, node)
        elif value is not None:
            raise Unfit(value)

    def effect(self, call: ast.Call, node: ast.stmt) -> None:
        """A statement that is a call: writes by indices, and changes of rows in place."""
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Subscript() as target, attr="copy_"), args=[rows], keywords=[]):
                self.store(target, self.value(rows), node)
                return
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name) as target, attr=attr), keywords=[]) if attr.endswith("_"):
                value = self.values.get(name)
                if value is not None and attr[:-1] in ELEMENTWISE:
                    self.pointwise([(target, value), *((argument, self.value(argument)) for argument in call.args)])
                    return
                if attr in WRITES and self.writes(call):
                    self.closed.add(id(node))
                    return
        self.nothing(call)

    def is_closed(self, body: Sequence[ast.stmt]) -> bool:
        """Whether statements do nothing but write by indices, and bind names that nobody reads elsewhere."""
        bound: dict[str, int] = {}
        if not all(self._only_binds(node, bound) for node in body):
            return False
        inside = {id(part) for node in body for part in walk(node)}
        # What stands before the outermost loop around does not see what a step of it binds.
        start = (self.loops or body)[0].lineno
        loads = [n for n in walk(self.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in bound]
        return all(id(n) in inside and n.lineno > bound[n.id] for n in loads if n.lineno >= start)

    def _only_binds(self, node: ast.stmt, bound: dict[str, int]) -> bool:
        """Whether a statement is closed, or only binds names, which are added to `bound` with their lines."""
        if id(node) in self.closed:
            return True
        match node:
            case ast.Assign(targets=[ast.Name() | ast.Tuple() as target]):
                for name in [target] if isinstance(target, ast.Name) else target.elts:
                    if not isinstance(name, ast.Name):
                        return False
                    bound.setdefault(name.id, node.lineno)
                return True
            case ast.AugAssign(target=ast.Name(id=name)):
                return name in bound
            case ast.If(body=body, orelse=orelse):
                return all(self._only_binds(statement, bound) for statement in (*body, *orelse))
        return isinstance(node, ast.Assert | ast.Pass)


def replaces(target: ast.expr, value: ast.expr) -> bool:
    """`out = out.index_copy(0, places, rows)`: whether an array is replaced by itself after a write."""
    match value:
        case ast.Call(func=ast.Attribute(value=array, attr=name)):
            return name in WRITES and ast.unparse(target) == ast.unparse(array)
    return False
