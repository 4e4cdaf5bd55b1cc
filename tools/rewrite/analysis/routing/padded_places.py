"""Finds the places that a tensor's values select, and follows them to where what was computed of them is written: where that is all that
becomes of them, the list of places may as well be padded to a length that depends on no values.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.masked_dataflow import asks_for_any
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.analysis.routing.place_expressions import Callee
from migrate_agent.tools.rewrite.analysis.routing.place_values import Kind, Padded, PlaceValue, Unfit
from migrate_agent.tools.rewrite.analysis.routing.place_writes import PlaceWrites, replaces
from migrate_agent.tools.rewrite.analysis.routing.row_functions import FileFacts
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span


def padded_places(
    repo: Repo,
    source: FileFacts,
    function: FunctionNode,
    owner: ClassModel | None,
    refused: frozenset[Span],
    observed_lines: frozenset[int],
) -> Padded:
    """What of a function may be computed for as many places as there may be; `refused` are the selections that are settled otherwise.

        edge = adj.nonzero().t()
        weights = torch.exp(self.score(h[edge[0]]))
        out = torch.sparse_coo_tensor(edge, weights, (n, n)) @ h

    How many places there are depends on values. The list may as well be as long as it could be, with indices beyond the end behind the last
    place, where each value is computed from its own place alone, and all that is done with the values is to write them by these indices: such
    writes leave out what lies beyond the end.
    """
    if not any(isinstance(node, ast.Attribute) and node.attr in ("where", "nonzero") for node in walk(function)):
        return Padded()
    left_out: set[Span | None] = set(refused)
    while True:
        search = _Search(repo, source, source.file, owner, function, left_out, observed_lines)
        try:
            search.block(function.body)
        except Unfit as unfit:
            if unfit.selections <= left_out:
                return Padded()
            left_out |= unfit.selections
        else:
            return search.result


@dataclass
class _Search(PlaceWrites):
    """Goes through the statements of a function in order."""

    returned: list[PlaceValue | None] = field(default_factory=list)
    """What it gives, by each `return`."""
    bound: set[str] = field(default_factory=set)
    """Names that have a value."""
    guarded: int = 0
    """How many tests for places stand around the statement at hand."""

    def __post_init__(self) -> None:
        arguments = self.function.args
        self.bound |= {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        inner = (n for n in walk(self.function) if isinstance(n, ast.FunctionDef | ast.Lambda | ast.ClassDef) and n is not self.function)
        self.captured = {n.id for scope in inner for n in walk(scope) if isinstance(n, ast.Name)}

    def result_of(self, callee: Callee, values: Mapping[str, PlaceValue]) -> PlaceValue | None:
        """What all that it returns is alike."""
        inner = _Search(
            self.repo,
            self.source,
            callee.file,
            callee.owner,
            callee.function,
            self.refused,
            self.observed_lines,
            dict(values),
            self.depth + 1,
        )
        inner.block(callee.function.body)
        if len(set(inner.returned)) > 1 or inner.result.unknown:
            raise Unfit(*values.values())
        return inner.returned[0] if inner.returned else None

    def block(self, body: Sequence[ast.stmt], in_loop: bool = False) -> None:
        """Statements, one after the other; raises `Unfit` where the number of places would be seen, or their order."""
        for position, node in enumerate(body):
            if isinstance(node, ast.If) and self._guards(node, body[position + 1 :] if in_loop else []):
                continue
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value, node)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value, node)
            case ast.AugAssign():
                self.augment(node)
            case ast.If(test=test, body=body, orelse=orelse):
                self.nothing(test)
                self._branches(body, orelse)
            case ast.For(target=target, iter=source, body=body, orelse=orelse):
                self.nothing(source)
                self.loops.append(node)
                for _ in range(2):
                    self._bind(target, None)
                    self._branches(body, [], in_loop=True)
                self.loops.pop()
                self.block(orelse)
            case ast.While(test=test, body=body, orelse=[]):
                self.loops.append(node)
                for _ in range(2):
                    self.nothing(test)
                    self._branches(body, [], in_loop=True)
                self.loops.pop()
            case ast.With(items=items, body=body):
                for item in items:
                    self.nothing(item.context_expr)
                self.block(body)
            case ast.Return(value=value):
                result = self.value(value) if value is not None else None
                if result is not None and self.depth == 0:
                    raise Unfit(result)
                self.returned.append(result)
            case ast.Expr(value=ast.Call() as call):
                self.effect(call, node)
            case ast.Assert():
                pass  # what holds for all values holds for copies of them
            case _:
                self.nothing(node)

    # -- branches ---------------------------------------------------------------------------------------------------

    def _branches(self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], in_loop: bool = False) -> None:
        before, bound = dict(self.values), frozenset(self.bound)
        body_shown = self._branch(body, in_loop)
        after, self.values = self.values, before
        orelse_shown = self._branch(orelse)
        if orelse_shown and not body_shown:
            return
        if body_shown and not orelse_shown:
            self.values = after
            return
        for name in {*after, *self.values}:
            sides = {after.get(name), self.values.get(name)}
            values = [side for side in sides if side is not None]
            # A number that counts places is one, whichever way it was taken.
            if {side.kind for side in values} != {Kind.COUNT} and (len(values) > 1 or (None in sides and name in bound)):
                raise Unfit(*values)
            self.values[name] = values[0]

    def _branch(self, body: Sequence[ast.stmt], in_loop: bool = False) -> bool:
        """Goes through a branch; `False` where nothing can be shown of one that no example ran."""
        lines = range(body[0].lineno, (body[-1].end_lineno or 0) + 1) if body else range(0)
        exercised = not body or self.file is not self.source.file or not self.observed_lines or not self.observed_lines.isdisjoint(lines)
        try:
            self.block(body, in_loop)
        except Unfit:
            # Without the test around, such a branch is run where it was not in the source.
            if exercised or self.guarded:
                raise
            parts = (part for node in body for part in walk(node))
            self.result.unknown |= {part.lineno for part in parts if isinstance(part, ast.stmt) and not hasattr(part, "body")}
            return False
        return True

    def _guards(self, node: ast.If, following: Sequence[ast.stmt]) -> bool:
        """Whether a test for places goes, with `following` the rest of the body of a loop; what is behind it is gone through here or later."""
        asks = asks_for_any(node.test)
        value = self.values.get(asks.of.id) if asks is not None and asks.counts_rows and isinstance(asks.of, ast.Name) else None
        if asks is None or value is None or node.orelse or self.depth:
            return False
        if value.kind not in (Kind.LIST, Kind.SQUEEZED, Kind.ROWS, Kind.TABLE):
            return False
        skips = all(isinstance(step, ast.Continue) for step in node.body)
        body = list(node.body if asks.positive else following if skips else [])
        if not body:
            raise Unfit(value)
        values, bound = dict(self.values), set(self.bound)
        self.guarded += 1
        self.block(body)
        self.guarded -= 1
        if not self.is_closed(body):
            raise Unfit(value)
        if not asks.positive:
            self.values, self.bound = values, bound
        self.result.guards.add(self.span(node))
        return True

    # -- names ------------------------------------------------------------------------------------------------------

    def _assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
        match target, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=parts) if len(targets) == len(parts):
                results = [self.value(part) for part in parts]
                for element, result in zip(targets, results, strict=True):
                    self._bind(element, result)
            case ast.Tuple(elts=targets), _ if (tables := self.selected(value)) is not None and tables.kind == Kind.TABLES:
                for element in targets:
                    self._bind(element, PlaceValue(Kind.LIST, tables.selection))
            case ast.Subscript(), _:
                self.store(target, self.value(value), node)
            case _:
                result = self.value(value)
                if result is None and replaces(target, value):
                    self.closed.add(id(node))
                self._bind(target, result)

    def _bind(self, target: ast.expr, value: PlaceValue | None) -> None:
        match target:
            case ast.Name(id=name):
                self.bound.add(name)
                self.values.pop(name, None)
                if value is not None and name in self.captured:
                    raise Unfit(value)
                if value is not None:
                    self.values[name] = value
            case _ if value is not None:
                raise Unfit(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._bind(part, None)
            case ast.Starred(value=inner):
                self._bind(inner, None)
            case _:
                self.nothing(target)
