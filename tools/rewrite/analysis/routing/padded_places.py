"""Follows the places that a tensor's values select, as many as there may be, to where what was computed of them is written:

    edge = adj.nonzero().t()
    weights = torch.exp(self.score(h[edge[0]]))
    out = torch.sparse_coo_tensor(edge, weights, (n, n)) @ h

How many places there are depends on values. The list may as well be as long as it could be, with indices beyond the end behind the last place,
where each value is computed from its own place alone, and all that is done with the values is to write them by these indices: such writes leave
out what lies beyond the end.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.autograd_functions.sparse_products import SPARSE, sparse_product
from migrate_agent.tools.rewrite.analysis.custom_kernels import FUNCTION_BASES
from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.masked_dataflow import asks_for_any
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo, dotted_name
from migrate_agent.tools.rewrite.analysis.routing.row_functions import (
    ALONG_LAST,
    KEEPING,
    LAYERS,
    POINTWISE,
    REDUCING,
    FileFacts,
    acts_on_rows,
)
from migrate_agent.tools.rewrite.analysis.routing.selections import Form, peeled
from migrate_agent.tools.rewrite.tables.registry import public_name
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

TABLE, COLUMNS, LIST, SQUEEZED, ROWS, TURNED, COUNT = "table", "columns", "list", "squeezed list", "rows", "turned rows", "count"
"""Kinds of values: places, one in each row or in each column; indices of one axis, which have no axis where `squeeze` met a single one; values
with a row for each place, or a column of a matrix; how many places there are."""
WRITES = frozenset({"index_copy_", "index_add_", "index_copy", "index_add"})
ELEMENTWISE = POINTWISE | {"isnan", "isinf", "isfinite"}
SAME = KEEPING | {"detach", "cuda", "cpu"}
POINTWISE_LAYERS = LAYERS - {"torch.nn.Linear", "torch.nn.LayerNorm", "torch.nn.RMSNorm", "torch.nn.PReLU"}
PRODUCTS = frozenset({"matmul", "mm"})
DEEPEST = 3


class Write(NamedTuple):
    """A write to the next places of an array, `out[offset : offset + n]`: the name of the first place, and that of the indices."""

    offset: str
    indices: str


class Padded(NamedTuple):
    """What becomes of the expressions of a function, by their spans."""

    selections: Mapping[Span, Form] = {}
    """Calls that select places → the form of their result."""
    steps: frozenset[Span] = frozenset()
    """What only gave the places that form."""
    reads: frozenset[Span] = frozenset()
    """`x[places]` and `x.index_select(0, places)`."""
    gathers: frozenset[Span] = frozenset()
    """Calls of `gather` whose indices are values of places."""
    lookups: Mapping[Span, str] = {}
    """Values of places by which an embedding looks up its rows → the text of that embedding."""
    counts: Mapping[Span, str] = {}
    """Expressions that say how many places there are → the name of the indices."""
    writes: Mapping[Span, Write] = {}
    guards: frozenset[Span] = frozenset()
    """Tests for places that go: what they leave out does nothing where there are none."""
    unknown: frozenset[int] = frozenset()
    """The lines of statements in branches that no example ran, and of which nothing can be shown."""


@dataclass(frozen=True)
class _Value:
    kind: str
    selection: Span | None


class _Unfit(Exception):
    """The number of places would be seen, or the order of values."""

    def __init__(self, *values: _Value | None) -> None:
        super().__init__()
        self.selections = {value.selection for value in values if value is not None}


@dataclass
class _Search:
    """Goes through a function in order, and knows which local names hold values of which places."""

    repo: Repo
    source: FileFacts
    file: FileModel
    owner: ClassModel | None
    function: FunctionNode
    refused: set[Span | None]
    observed_lines: frozenset[int]
    values: dict[str, _Value] = field(default_factory=dict)
    depth: int = 0
    results: list[_Value | None] = field(default_factory=list)
    selections: dict[Span, Form] = field(default_factory=dict)
    steps: set[Span] = field(default_factory=set)
    reads: set[Span] = field(default_factory=set)
    gathers: set[Span] = field(default_factory=set)
    lookups: dict[Span, str] = field(default_factory=dict)
    counts: dict[Span, str] = field(default_factory=dict)
    writes: dict[Span, Write] = field(default_factory=dict)
    guards: set[Span] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)
    """Statements that write by indices, or count places."""
    bound: set[str] = field(default_factory=set)
    """Names that have a value."""
    guarded: int = 0
    """How many tests for places stand around the statement at hand."""
    loops: list[ast.stmt] = field(default_factory=list)
    """The loops around the statement at hand."""

    def __post_init__(self) -> None:
        arguments = self.function.args
        self.bound |= {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        inner = (n for n in walk(self.function) if isinstance(n, ast.FunctionDef | ast.Lambda | ast.ClassDef) and n is not self.function)
        self.captured = {n.id for one in inner for n in walk(one) if isinstance(n, ast.Name)}

    def padded(self) -> Padded:
        self.block(self.function.body)
        return Padded(
            self.selections,
            frozenset(self.steps),
            frozenset(self.reads),
            frozenset(self.gathers),
            self.lookups,
            self.counts,
            self.writes,
            frozenset(self.guards),
            frozenset(self.unknown),
        )

    # -- statements -------------------------------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt], in_loop: bool = False) -> None:
        for position, node in enumerate(body):
            if isinstance(node, ast.If) and self._guards(node, body[position + 1 :] if in_loop else []):
                continue
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value, node)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value, node)
            case ast.AugAssign():
                self._augment(node)
            case ast.If(test=test, body=body, orelse=orelse):
                self._nothing(test)
                self._branches(body, orelse)
            case ast.For(target=target, iter=source, body=body, orelse=orelse):
                self._nothing(source)
                self.loops.append(node)
                for _ in range(2):
                    self._bind(target, None)
                    self._branches(body, [], in_loop=True)
                self.loops.pop()
                self.block(orelse)
            case ast.While(test=test, body=body, orelse=[]):
                self.loops.append(node)
                for _ in range(2):
                    self._nothing(test)
                    self._branches(body, [], in_loop=True)
                self.loops.pop()
            case ast.With(items=items, body=body):
                for item in items:
                    self._nothing(item.context_expr)
                self.block(body)
            case ast.Return(value=value):
                result = self.value(value) if value is not None else None
                if result is not None and self.depth == 0:
                    raise _Unfit(result)
                self.results.append(result)
            case ast.Expr(value=ast.Call() as call):
                self._effect(call, node)
            case ast.Assert():
                pass  # what holds for all values holds for copies of them
            case _:
                if self._holds(node):
                    raise _Unfit(*self._held(node))

    def _branches(self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], in_loop: bool = False) -> None:
        before, bound = dict(self.values), frozenset(self.bound)
        ends = [self._branch(body, in_loop)]
        after, self.values = self.values, dict(before)
        ends.append(self._branch(orelse))
        if ends == [False, True]:
            return
        if ends == [True, False]:
            self.values = after
            return
        for name in {*after, *self.values}:
            sides = {after.get(name), self.values.get(name)}
            values = [side for side in sides if side is not None]
            # A number that counts places is one, whichever way it was taken.
            if {side.kind for side in values} != {COUNT} and (len(values) > 1 or (None in sides and name in bound)):
                raise _Unfit(*values)
            self.values[name] = values[0]

    def _branch(self, body: Sequence[ast.stmt], in_loop: bool = False) -> bool:
        """Goes through a branch; `False` where nothing can be shown of one that no example ran."""
        lines = range(body[0].lineno, (body[-1].end_lineno or 0) + 1) if body else range(0)
        exercised = not body or self.file is not self.source.file or not self.observed_lines or not self.observed_lines.isdisjoint(lines)
        try:
            self.block(body, in_loop)
        except _Unfit:
            # Without the test around, such a branch is run where it was not in the source.
            if exercised or self.guarded:
                raise
            self.unknown |= {
                part.lineno for node in body for part in walk(node) if isinstance(part, ast.stmt) and not hasattr(part, "body")
            }
            return False
        return True

    def _assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
        match target, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=parts) if len(targets) == len(parts):
                for one, result in [(one, self.value(part)) for one, part in zip(targets, parts, strict=True)]:
                    self._bind(one, result)
            case ast.Tuple(elts=targets), _ if (tuple_form := self._selected(value)) is not None and tuple_form.kind == TABLE + "s":
                for one in targets:
                    self._bind(one, _Value(LIST, tuple_form.selection))
            case ast.Subscript(), _:
                self._store(target, self.value(value), node)
            case _:
                result = self.value(value)
                if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in WRITES and result is None:
                    self._own_write(target, value, node)
                self._bind(target, result)

    def _own_write(self, target: ast.expr, call: ast.Call, node: ast.stmt) -> None:
        """`out = out.index_copy(0, places, rows)`"""
        assert isinstance(call.func, ast.Attribute)
        if ast.unparse(target) == ast.unparse(call.func.value):
            self.closed.add(id(node))

    def _bind(self, target: ast.expr, value: _Value | None) -> None:
        match target:
            case ast.Name(id=name):
                self.bound.add(name)
                self.values.pop(name, None)
                if value is not None and name in self.captured:
                    raise _Unfit(value)
                if value is not None:
                    self.values[name] = value
            case _ if value is not None:
                raise _Unfit(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._bind(part, None)
            case ast.Starred(value=inner):
                self._bind(inner, None)
            case _:
                self._nothing(target)

    def _store(self, target: ast.Subscript, value: _Value | None, node: ast.stmt) -> None:
        """`out[places] = rows`, `out[offset : offset + n] = rows`, `rows[:, 0] = number`"""
        whole, (first, *rest) = self.value(target.value), _index(target)
        index = self.value(first) if not isinstance(first, ast.Slice) else None
        if (
            index is not None
            and index.kind == LIST
            and self._is_array(target.value, whole)
            and all(map(_is_full, rest))
            and value in (None, _Value(ROWS, index.selection))
        ):
            self.closed.add(id(node))
        elif (
            value is not None
            and value.kind == ROWS
            and self._is_array(target.value, whole)
            and not rest
            and (write := self._next_places(first, value))
        ):
            self.writes[self._span(target)] = write
            self.closed.add(id(node))
        elif whole is not None and whole.kind == ROWS and value in (None, whole) and _is_full(first):
            for part in rest:
                self._nothing(part)
        elif whole is not None or value is not None:
            raise _Unfit(whole, value, index)
        else:
            self._nothing(target.slice)

    def _is_array(self, node: ast.expr, value: _Value | None) -> bool:
        return value is None and is_tensor(self._fact(node))

    def _next_places(self, index: ast.expr, value: _Value) -> Write | None:
        """`offset : offset + n` for as many places as there are rows."""
        match index:
            case ast.Slice(lower=ast.Name(id=name), upper=ast.BinOp(left=ast.Name(id=other), op=ast.Add(), right=count), step=None) if (
                name == other and self.depth == 0
            ):
                number, offset = self.value(count), self.values.get(name)
                if number == _Value(COUNT, value.selection) and (offset is None or offset.kind == COUNT):
                    return Write(name, self._indices(value))
        return None

    def _augment(self, node: ast.AugAssign) -> None:
        value, target = self.value(node.value), node.target
        if isinstance(target, ast.Name):
            own = self.values.get(target.id)
            counts = value is not None and value.kind == COUNT and isinstance(node.op, ast.Add)
            if counts and (own is None or own.kind == COUNT):
                self.values[target.id] = _Value(COUNT, None)
                self.closed.add(id(node))
            elif own is not None and own.kind in (ROWS, TURNED):
                self._pointwise([(target, own), (node.value, value)])
            elif own is not None or value is not None:
                raise _Unfit(own, value)
        elif isinstance(target, ast.Subscript):
            if not isinstance(node.op, ast.Add) and (value is not None or self._holds(target)):
                raise _Unfit(value, *self._held(target))
            self._store(target, value, node)
        elif value is not None:
            raise _Unfit(value)

    def _effect(self, call: ast.Call, node: ast.stmt) -> None:
        """A statement that is a call: writes by indices, and changes of rows in place."""
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Subscript() as target, attr="copy_"), args=[source], keywords=[]):
                self._store(target, self.value(source), node)
                return
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name) as target, attr=attr), keywords=[]) if attr.endswith("_"):
                own = self.values.get(name)
                if own is not None and attr[:-1] in ELEMENTWISE:
                    self._pointwise([(target, own), *((argument, self.value(argument)) for argument in call.args)])
                    return
                if attr in WRITES and self._writes(call):
                    self.closed.add(id(node))
                    return
        self._nothing(call)

    def _writes(self, call: ast.Call) -> bool:
        """`out.index_copy_(0, places, rows)`: whether there are places in it, which raises where anything else is written by them."""
        assert isinstance(call.func, ast.Attribute)
        values = [self.value(call.func.value), *(self.value(argument) for argument in call.args)]
        if not any(values):
            return False
        match values, call.args:
            case [None, None, _Value(kind="list" | "squeezed list", selection=selection), source], [ast.Constant(value=0), *_] if (
                source in (None, _Value(ROWS, selection)) and not call.keywords
            ):
                return True
        raise _Unfit(*values)

    # -- tests for places -------------------------------------------------------------------------------------------

    def _guards(self, node: ast.If, following: Sequence[ast.stmt]) -> bool:
        """Whether a test for places goes, with `following` the rest of the body of a loop; what is behind it is gone through here or later."""
        asks = asks_for_any(node.test)
        value = self.values.get(asks.of.id) if asks is not None and asks.counts_rows and isinstance(asks.of, ast.Name) else None
        if asks is None or value is None or node.orelse or self.depth or value.kind not in (LIST, SQUEEZED, ROWS, TABLE):
            return False
        skips = all(isinstance(step, ast.Continue) for step in node.body)
        body = list(node.body if asks.positive else following if skips else [])
        if not body:
            raise _Unfit(value)
        values, bound = dict(self.values), set(self.bound)
        self.guarded += 1
        self.block(body)
        self.guarded -= 1
        if not self._is_closed(body):
            raise _Unfit(value)
        if not asks.positive:
            self.values, self.bound = values, bound
        self.guards.add(self._span(node))
        return True

    def _is_closed(self, body: Sequence[ast.stmt]) -> bool:
        """Whether statements do nothing but write by indices, and bind names that nobody reads elsewhere."""
        bound: dict[str, int] = {}
        if not all(self._only_binds(node, bound) for node in body):
            return False
        inside = {id(part) for node in body for part in walk(node)}
        # What stands before the outermost loop around does not see what a step of it binds.
        first = (self.loops or body)[0].lineno
        loads = [n for n in walk(self.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in bound]
        return all(id(n) in inside and n.lineno > bound[n.id] for n in loads if n.lineno >= first)

    def _only_binds(self, node: ast.stmt, bound: dict[str, int]) -> bool:
        if id(node) in self.closed:
            return True
        match node:
            case ast.Assign(targets=[ast.Name() | ast.Tuple() as target]):
                names = [target] if isinstance(target, ast.Name) else target.elts
                for name in names:
                    if not isinstance(name, ast.Name):
                        return False
                    bound.setdefault(name.id, node.lineno)
                return True
            case ast.AugAssign(target=ast.Name(id=name)):
                return name in bound
            case ast.If(body=body, orelse=orelse):
                return all(self._only_binds(one, bound) for one in (*body, *orelse))
        return isinstance(node, ast.Assert | ast.Pass)

    # -- expressions ------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> _Value | None:
        """What an expression holds of places; `None` where it holds nothing of them."""
        if (selected := self._selected(node)) is not None:
            if selected.kind == TABLE + "s":
                raise _Unfit(selected)
            return selected
        match node:
            case ast.Name(id=name):
                return self.values.get(name)
            case ast.Attribute(value=inner, attr="dtype" | "device"):
                if not isinstance(inner, ast.Name):
                    self._nothing(inner)
                return None
            case ast.Attribute(value=inner, attr="T" | "mT"):
                return self._turned(self.value(inner), node)
            case ast.Subscript():
                return self._part(node)
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
                return self._pointwise([(operand, self.value(operand))])
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._product(self.value(left), self.value(right))
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                return self._pointwise([(left, self.value(left)), (right, self.value(right))])
            case ast.Call():
                return self._call(node)
        self._nothing(node)
        return None

    def _nothing(self, node: ast.AST) -> None:
        """Raises where anything of places stands inside."""
        if isinstance(node, ast.expr) and not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            if type(node) in (
                ast.Tuple,
                ast.List,
                ast.Dict,
                ast.BoolOp,
                ast.IfExp,
                ast.Slice,
                ast.Starred,
                ast.JoinedStr,
                ast.FormattedValue,
            ):
                for child in ast.iter_child_nodes(node):
                    self._nothing(child)
            elif type(node) in (ast.Name, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare):
                value = self.value(node)
                if value is not None:
                    raise _Unfit(value)
            elif self._holds(node):
                raise _Unfit(*self._held(node))
        elif self._holds(node):
            raise _Unfit(*self._held(node))

    def _held(self, node: ast.AST) -> list[_Value]:
        return [self.values[n.id] for n in walk(node) if isinstance(n, ast.Name) and n.id in self.values]

    def _holds(self, node: ast.AST) -> bool:
        return bool(self._held(node))

    def _selected(self, node: ast.expr) -> _Value | None:
        """A selection of places with all that gives it another form."""
        selection = peeled(node, self._dotted) if self.depth == 0 else None
        if selection is None or self._span(selection.call) in self.refused:
            return None
        fact = self._fact(selection.mask)
        if self._holds(selection.mask) or not is_tensor(fact) or (selection.form.flat and {len(shape) for shape in fact.shapes} - {1}):  # type: ignore[union-attr]
            return None
        span = self._span(selection.call)
        self.selections[span] = selection.form
        self.steps |= {self._span(step) for step in selection.steps}
        return _Value(selection.form.kind, span)

    def _part(self, node: ast.Subscript) -> _Value | None:
        first, *rest = parts = _index(node)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return self._size(self.value(node.value.value), _number(node.slice), node)
        value = self.value(node.value)
        match value.kind if value is not None else "":
            case "table" if len(rest) == 1 and _is_full(first) and _number(rest[0]) is not None:
                return _Value(LIST, value.selection)  # type: ignore[union-attr]
            case "columns" if _number(first) is not None and all(map(_is_full, rest)):
                return _Value(LIST, value.selection)  # type: ignore[union-attr]
            case "turned rows" if _number(first) is not None and all(map(_is_full, rest)):
                return _Value(ROWS, value.selection)  # type: ignore[union-attr]
            case "rows" if _is_full(first) and all(self._is_simple(part) for part in rest):
                return value
            case "" if not isinstance(first, ast.Slice) and (index := self.value(first)) is not None:
                if index.kind == LIST and all(map(_is_full, rest)) and self._is_array(node.value, value):
                    return self._read(node, index)
                raise _Unfit(index)
        if value is not None:
            raise _Unfit(value)
        for part in parts:
            self._nothing(part)
        return None

    def _read(self, node: ast.expr, index: _Value) -> _Value:
        if self.depth:
            raise _Unfit(index)
        self.reads.add(self._span(node))
        return _Value(ROWS, index.selection)

    def _size(self, value: _Value | None, axis: int | None, node: ast.expr) -> _Value | None:
        """`rows.shape[0]`, which counts the places, and the size of another axis."""
        if value is None:
            return None
        if value.kind in (ROWS, LIST, TABLE) and axis == 0:
            return self._count(value, node)
        if value.kind in (ROWS, TABLE) and axis is not None and axis > 0:
            return None
        raise _Unfit(value)

    def _count(self, value: _Value, node: ast.expr) -> _Value:
        if self.depth:
            raise _Unfit(value)
        self.counts[self._span(node)] = self._indices(value)
        return _Value(COUNT, value.selection)

    def _indices(self, value: _Value) -> str:
        """A name that holds the indices at the place at hand."""
        names = [name for name, one in self.values.items() if one.selection == value.selection and one.kind in (LIST, SQUEEZED)]
        if not names:
            raise _Unfit(value)
        return names[0]

    def _turned(self, value: _Value | None, node: ast.expr) -> _Value | None:
        if value is None:
            return None
        turned = {TABLE: COLUMNS, COLUMNS: TABLE, ROWS: TURNED, TURNED: ROWS}.get(value.kind)
        if turned is None or (value.kind in (ROWS, TURNED) and self._rank(node) != 2):
            raise _Unfit(value)
        return _Value(turned, value.selection)

    def _product(self, first: _Value | None, second: _Value | None) -> _Value | None:
        if first is None and second is None:
            return None
        if first is not None and first.kind == ROWS and second is None:
            return first
        if second is not None and second.kind == TURNED and first is None:
            return second
        raise _Unfit(first, second)

    def _pointwise(self, operands: Sequence[tuple[ast.expr, _Value | None]]) -> _Value | None:
        """What is computed element by element from values of the same places, and from numbers that are the same for all of them."""
        values = {value for _, value in operands if value is not None}
        if not values:
            return None
        value = next(iter(values))
        if len(values) > 1 or value.kind not in (ROWS, TURNED):
            raise _Unfit(*values)
        ranks = {self._rank(node) for node, one in operands if one is not None}
        if not all(one is not None or self._is_same_for_all(node, ranks, value) for node, one in operands):
            raise _Unfit(value)
        return value

    def _is_same_for_all(self, node: ast.expr, ranks: set[int], value: _Value) -> bool:
        fact = self._fact(node)
        if isinstance(node, ast.Constant) or _number(node) is not None:
            return True
        if fact is None:
            return False
        if not is_tensor(fact):
            return set(fact.kinds) <= {"int", "float", "bool"}
        if value.kind == TURNED:
            return bool(fact.shapes) and not any(fact.shapes)
        # As many rows as there happened to be places would not fit as many as there may be.
        return bool(fact.shapes) and -1 not in ranks and all(len(shape) <= min(ranks) for shape in fact.shapes)

    def _is_simple(self, part: ast.expr) -> bool:
        """An index behind that of the rows that selects nothing by values of places."""
        if self._holds(part):
            return False
        fact = self._fact(part)
        plain = isinstance(part, ast.Slice | ast.Constant) or _number(part) is not None
        return plain or (fact is not None and set(fact.kinds) == {"int"})

    # -- calls ------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> _Value | None:
        function, dotted = node.func, self._dotted(node.func)
        receiver = function.value if isinstance(function, ast.Attribute) and not dotted.startswith("torch") else None
        name = function.attr if isinstance(function, ast.Attribute) else dotted.rpartition(".")[2]
        arguments = [*node.args, *(option.value for option in node.keywords)]
        if not self._holds(node):
            for argument in arguments:  # a selection inside counts where it is read
                self._nothing(argument)
            return None
        if dotted in SPARSE:
            self._check_sparse([self.value(argument) for argument in arguments])
            return None
        if name in ("cat", "concat", "stack") and dotted.startswith("torch."):
            return self._joined(name, node)
        if (called := self._called(node)) is not None:
            return self._inside(called, node)
        fact = self._fact(function)
        if fact is not None and all(kind.startswith("module:") for kind in fact.kinds):
            return self._module([kind.removeprefix("module:") for kind in fact.kinds], node)
        if dotted.startswith("torch.") or receiver is not None:
            operands = [receiver, *node.args] if receiver is not None else node.args
            return self._torch(name, node, operands)
        if dotted in ("", "len") and isinstance(function, ast.Name) and function.id == "len" and len(arguments) == 1:
            return self._size(self.value(arguments[0]), 0, node)
        raise _Unfit(*self._held(node))

    def _check_sparse(self, values: Sequence[_Value | None]) -> None:
        """A sparse tensor whose indices are the places: what lies beyond the end is left out of it."""
        match values:
            case [_Value(kind="columns", selection=selection), _Value(kind="rows", selection=other), *rest] if selection == other:
                if not any(rest) and rest:
                    return
        raise _Unfit(*values)

    def _joined(self, name: str, node: ast.Call) -> _Value | None:
        parts = node.args[0].elts if node.args and isinstance(node.args[0], ast.Tuple | ast.List) else []
        values = [self.value(part) for part in parts]
        axis = _axis(node, 1)
        kinds = {value.kind for value in values if value is not None}
        if not parts or len(set(values)) != 1 or values[0] is None:
            raise _Unfit(*values, *self._held(node))
        if name == "stack":
            if kinds == {LIST} and axis in (None, 0):
                return _Value(COLUMNS, values[0].selection)
        elif kinds == {ROWS} and self._is_behind(axis, node):
            return values[0]
        raise _Unfit(*values)

    def _is_behind(self, axis: int | None, node: ast.expr) -> bool:
        """Whether an axis is known to be none of the rows."""
        return axis is not None and (axis > 0 or (axis == -1 and self._rank(node) >= 2))

    def _torch(self, name: str, node: ast.Call, operands: Sequence[ast.expr]) -> _Value | None:
        """A function of torch, or a method of its first operand."""
        options = [option.value for option in node.keywords]
        if name == "index_select" and len(operands) == 3 and not options:
            return self._index_select(node, operands)
        values, others = ([self.value(operand) for operand in group] for group in (operands, options))
        if not values:
            raise _Unfit(*others)
        first, axis = values[0], _axis(node, 1 if operands[0] in node.args else 0)
        if any(others) or (first is None and name not in (*PRODUCTS, *ELEMENTWISE)):
            if name in WRITES and self._writes(node):
                return None
            raise _Unfit(*values, *others)
        if name in PRODUCTS and len(values) == 2:
            return self._product(*values)
        if name in ELEMENTWISE and not (name == "dropout" and first is None):
            arrays = [(option, None) for option in options if is_tensor(self._fact(option))]
            return self._pointwise([*zip(operands, values, strict=True), *arrays])
        assert first is not None
        if any(values[1:]) and name != "type_as":
            if name == "gather" and len(values) == 3 and values == [first, None, first] and not options:
                return self._gather(node, operands, first)
            raise _Unfit(*values)
        return self._of_one(name, node, operands, first, axis)

    def _index_select(self, node: ast.Call, operands: Sequence[ast.expr]) -> _Value | None:
        whole, axis, index = (self.value(operand) for operand in operands)
        if whole is None and axis is None and index is not None and index.kind in (LIST, SQUEEZED) and _number(operands[1]) == 0:
            return self._read(node, index)
        raise _Unfit(whole, axis, index)

    def _gather(self, node: ast.Call, operands: Sequence[ast.expr], rows: _Value) -> _Value:
        """Indices that are values of places may lie anywhere where there is none."""
        if rows.kind != ROWS or _number(operands[1]) not in (1, -1) or self._rank(operands[0]) != 2 or self.depth:
            raise _Unfit(rows)
        self.gathers.add(self._span(node))
        return rows

    def _of_one(self, name: str, node: ast.Call, operands: Sequence[ast.expr], value: _Value, axis: int | None) -> _Value | None:
        """A function of one value of places."""
        texts = [ast.unparse(operand) for operand in operands[1:]]
        source = self._fact(operands[0])
        if name in SAME and value.kind != COUNT:
            return value
        if name in ("t", "transpose") and (name == "t" or sorted(texts) in (["0", "1"], ["-1", "0"])):
            return self._turned(value, node)
        if name in ("size", "numel"):
            return self._size(value, 0 if name == "numel" and value.kind == LIST else axis, node)
        if name in ("linear", "layer_norm", "rms_norm") and value.kind == ROWS:
            return value
        if name in (*ALONG_LAST, *REDUCING) and value.kind == ROWS and self._is_behind(axis, operands[0]):
            return value
        if name == "unsqueeze" and value.kind == ROWS and axis in (1, -1):
            return value
        if name in ("view", "reshape") and value.kind == ROWS and texts == ["-1", "1"] and self._rank(operands[0]) == 1:
            return value
        if name == "squeeze" and value.kind == ROWS and texts and self._is_behind(axis, operands[0]):
            return value
        if name == "squeeze" and not texts and not node.keywords and source is not None and self._rank(operands[0]) == 2:
            if all(shape[1 if value.kind == ROWS else 0] == 1 for shape in source.shapes) and value.kind in (ROWS, TURNED):
                return _Value(ROWS, value.selection)
        raise _Unfit(value)

    # -- calls of the repository's own ------------------------------------------------------------------------------

    def _module(self, classes: Sequence[str], node: ast.Call) -> _Value | None:
        values = [self.value(argument) for argument in (*node.args, *(option.value for option in node.keywords))]
        kinds = {public_name(name) for name in classes}
        match values:
            case [_Value(kind="rows" | "turned rows") as value] if kinds <= POINTWISE_LAYERS:
                return value
            case [_Value(kind="rows") as value] if kinds == {"torch.nn.Embedding"} and node.args and not self.depth:
                self.lookups[self._span(node.args[0])] = ast.unparse(node.func)
                return value
            case [_Value(kind="rows") as value] if self._rank(node.args[0]) >= 2 if node.args else False:
                if all(acts_on_rows(self.repo, name, self.source, self.owner) for name in classes):
                    return value
        model = self.repo.class_of(classes[0]) if len(classes) == 1 else None
        forward = (
            next(((one, one.methods["forward"]) for one in self.repo.ancestors(model) if "forward" in one.methods), None) if model else None
        )
        if forward is None or model is None:
            raise _Unfit(*values)
        return self._inside((model, forward[0].file, forward[1]), node)

    def _called(self, node: ast.Call) -> tuple[ClassModel, FileModel, FunctionNode] | None:
        """The method of `self` that is called."""
        parameters = self.function.args.args
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if self.owner is not None and parameters and name == parameters[0].arg:
                family = list(self.repo.ancestors(self.owner))
                overridden = any(attr in one.methods for one in self.repo.descendants.get(self.owner.id, []))
                method = next(((one, one.methods[attr]) for one in family if attr in one.methods), None)
                if method is not None and not overridden and not method[1].decorator_list:
                    return self.owner, method[0].file, method[1]
        return None

    def _inside(self, called: tuple[ClassModel, FileModel, FunctionNode], node: ast.Call) -> _Value | None:
        """What a function gives for values of places. It is rewritten for all its callers, so that it must be right for a padded list as it is."""
        owner, file, function = called
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)][1:]
        plain = not function.args.vararg and not function.args.kwarg and isinstance(function, ast.FunctionDef)
        arguments = {**dict(zip(names, node.args, strict=False)), **{option.arg or "": option.value for option in node.keywords}}
        if not plain or len(node.args) > len(names) or any(isinstance(argument, ast.Starred) for argument in node.args) or "" in arguments:
            raise _Unfit(*self._held(node))
        values = {name: value for name, argument in arguments.items() if (value := self.value(argument)) is not None}
        if self.depth >= DEEPEST:
            raise _Unfit(*values.values())
        if self._sparse_product(file, function, values):
            return None
        inner = _Search(self.repo, self.source, file, owner, function, self.refused, self.observed_lines, dict(values), self.depth + 1)
        inner.block(function.body)
        if len(set(inner.results)) > 1 or inner.unknown:
            raise _Unfit(*values.values())
        return inner.results[0] if inner.results else None

    def _sparse_product(self, file: FileModel, function: FunctionNode, values: Mapping[str, _Value]) -> bool:
        """Whether a function only hands its arguments to an autograd function that is the product of a sparse matrix with a dense one."""
        match function.body[-1]:
            case ast.Return(value=ast.Call(func=ast.Attribute(value=target, attr="apply"), args=args, keywords=[])) if (
                len([node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]) == 1
            ):
                model = self.repo.class_of(dotted_name(target, file) or file.own(ast.unparse(target)))
                if model is None or not set(self.repo.bases(model)) & set(FUNCTION_BASES) or not sparse_product(model):
                    return False
                self._check_sparse([values.get(argument.id) if isinstance(argument, ast.Name) else None for argument in args])
                return True
        return False

    # -- facts ------------------------------------------------------------------------------------------------------

    def _dotted(self, node: ast.expr) -> str:
        dotted = self.source.facts.dotted.get(self._span(node), "") if self.file is self.source.file else ""
        dotted = dotted or dotted_name(node, self.file)
        return public_name(dotted) if dotted else ""

    def _rank(self, node: ast.expr) -> int:
        fact = self._fact(node)
        ranks = {len(shape) for shape in fact.shapes} if fact is not None else set()
        return ranks.pop() if len(ranks) == 1 else -1

    def _fact(self, node: ast.AST) -> Observed | None:
        return self.source.facts.observed.get(self._span(node)) if self.file is self.source.file and hasattr(node, "lineno") else None

    def _span(self, node: ast.AST) -> Span:
        return span_of(node, self.file.lines)


def padded_places(
    repo: Repo,
    source: FileFacts,
    function: FunctionNode,
    owner: ClassModel | None,
    refused: frozenset[Span],
    observed_lines: frozenset[int],
) -> Padded:
    """What of a function may be computed for as many places as there may be; `refused` are the selections that are settled otherwise."""
    if not any(isinstance(node, ast.Attribute) and node.attr in ("where", "nonzero") for node in walk(function)):
        return Padded()
    left_out: set[Span | None] = set(refused)
    while True:
        try:
            return _Search(repo, source, source.file, owner, function, left_out, observed_lines).padded()
        except _Unfit as unfit:
            if unfit.selections <= left_out:
                return Padded()
            left_out |= unfit.selections


def _index(node: ast.Subscript) -> list[ast.expr]:
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _axis(node: ast.Call, position: int) -> int | None:
    """The axis that a call names, or has at this position."""
    named = [option.value for option in node.keywords if option.arg in ("dim", "axis")]
    values = [*named, *node.args[position : position + 1]]
    return _number(values[0]) if values else None


def _number(node: ast.expr) -> int | None:
    """A whole number that is written out."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if type(value) is int else None


def _is_full(node: ast.expr) -> bool:
    """`:` or `...`"""
    if isinstance(node, ast.Slice):
        return node.lower is node.upper is node.step is None
    return isinstance(node, ast.Constant) and node.value is Ellipsis
