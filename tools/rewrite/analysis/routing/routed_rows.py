"""Finds where a mask routes rows to an expert, and follows them to where the results are added to the rows they came from:

    mask = chosen == e
    rows, slots = torch.where(mask)
    out[rows] += expert(x[rows]) * weights[rows, slots, None]

How many rows there are depends on values. Where the expert acts on each row alone, and what it gives is weighed, it may as well be given all
rows, and the weights of those that the mask does not select be 0. A row that the mask selects several times gets the sum of its weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.masked_dataflow import asks_for_any
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.analysis.routing.row_functions import KEEPING, POINTWISE, FileFacts, Mixed, acts_on_rows, keeps_rows
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

PLACES, ROWS, SLOTS, ONCE, INVERSE, ZEROS = "places", "rows", "slots", "once", "inverse", "zeros"
"""Names that hold indices: of all axes in one table, of the rows, of the other axis, of the rows without repetition, of each row among those; and
zeros for each of the latter."""
ROW, WEIGHT, SUM = "row", "weight", "sum"
"""Values with a row for each index: made of rows that are read; of weights; products of both, which may be added up."""
NOTHING = ""
AXES = 2
"""Masks have one axis for the rows, and one for the slots in which an expert may be chosen."""
LAST_TWO = ({1, 2}, {-1, -2}, {1, -1}, {-2, 2})
"""The axes of a mask in a table of masks."""


class Weights(NamedTuple):
    """A read `w[rows, slots]`: the mask (its span), whether it stands the other way round, the axis of the slots in `w`, and how many axes are new."""

    mask: Span
    turned: bool
    axis: int
    new_axes: int


class Routes(NamedTuple):
    """What becomes of the places of a function: statements that go, `if` around rows that are there, reads of rows, weights, and what is added to."""

    dropped: frozenset[Span] = frozenset()
    unwrapped: frozenset[Span] = frozenset()
    reads: frozenset[Span] = frozenset()
    weights: Mapping[Span, Weights] = {}
    sums: frozenset[Span] = frozenset()
    """Statements `out[rows] += …`, calls `out.index_add_(0, rows, …)`."""
    totals: frozenset[Span] = frozenset()
    """Calls `total.scatter_add_(0, inverse, weights)`."""
    masks: Mapping[Span, str] = {}
    """Mask (its span) → its name, or "" where it has none."""
    selections: frozenset[Span] = frozenset()
    """Calls that give the places of a mask."""
    loops: Mapping[Span, str] = {}
    """Loops over what is chosen → the array whose first axis has all that may be."""
    lists: Mapping[Span, str] = {}
    """Loops whose steps without rows go no longer past the test → the list of experts that they index, which may be shorter."""


@dataclass
class _Route:
    """One selection: its statements, and what is known of its names."""

    mask: ast.expr
    size: tuple[frozenset[int], frozenset[int]]
    """The lengths of the mask's axes that were seen."""
    levels: dict[str, str] = field(default_factory=dict)
    axes: dict[str, int] = field(default_factory=dict)
    """Name of an index → the axis of the mask that it goes along."""
    rows_axis: int = 0
    foreign: set[str] = field(default_factory=set)
    """Names that were read while they were no rows."""
    dropped: list[ast.stmt] = field(default_factory=list)
    reads: list[ast.expr] = field(default_factory=list)
    weights: dict[Span, Weights] = field(default_factory=dict)
    sums: list[ast.stmt] = field(default_factory=list)
    totals: list[ast.stmt] = field(default_factory=list)
    local: set[str] = field(default_factory=set)
    """Names of the statements around that are no rows."""
    guarded: bool = False
    """Whether steps without rows are left out in the source."""
    loop: ast.For | None = None
    """The loop around, where it goes through what is chosen alone."""


class _Search:
    """Goes through the blocks of a function."""

    def __init__(self, repo: Repo, source: FileFacts, function: FunctionNode, owner: ClassModel | None) -> None:
        self.repo, self.file, self.facts, self.source, self.function, self.owner = (
            repo,
            source.file,
            source.facts,
            source,
            function,
            owner,
        )

    def routes(self) -> Routes:
        """All selections of the function that may be weighed instead."""
        routes: list[tuple[_Route, ast.If | None]] = []
        for holder in walk(self.function):
            body = getattr(holder, "body", None)
            for position, node in enumerate(body if isinstance(body, list) else ()):
                route = self._start(node)
                if route is not None and isinstance(body, list):
                    try:
                        around = self._follow(route, body, position, holder)
                    except Mixed:
                        continue
                    routes.append((route, around))
        return Routes(
            frozenset(self._span(node) for route, _ in routes for node in route.dropped),
            frozenset(self._span(around) for _, around in routes if around is not None),
            frozenset(self._span(node) for route, _ in routes for node in route.reads),
            {span: weights for route, _ in routes for span, weights in route.weights.items()},
            frozenset(self._span(_call_of(node)) for route, _ in routes for node in route.sums),
            frozenset(self._span(_call_of(node)) for route, _ in routes for node in route.totals),
            {self._span(route.mask): route.mask.id if isinstance(route.mask, ast.Name) else "" for route, _ in routes},
            frozenset(self._span(_call_of(route.dropped[0])) for route, _ in routes),
            {self._span(route.loop): _table_of(route.mask) for route, _ in routes if route.loop is not None},
            {self._span(loop): text for route, _ in routes if route.guarded for loop, text in self._indexed_lists(route)},
        )

    # -- where it begins --------------------------------------------------------------------------------------------

    def _start(self, node: ast.stmt) -> _Route | None:
        """`rows, slots = torch.where(mask)`, `places = torch.nonzero(mask)`."""
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)])], value=ast.Call() as call) if (
                mask := self._selected(call, several=True)
            ) is not None and first != second:
                route = self._route(mask)
                if route is not None:
                    route.axes, route.dropped = {first: 0, second: 1}, [node]
                return route
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if (
                mask := self._selected(call, several=False)
            ) is not None:
                route = self._route(mask)
                if route is not None:
                    route.levels, route.dropped = {name: PLACES}, [node]
                return route
        return None

    def _route(self, mask: ast.expr) -> _Route | None:
        fact = self._fact(mask)
        if fact is None or not fact.shapes or {len(shape) for shape in fact.shapes} != {AXES} or not _counts(fact):
            return None
        sizes = frozenset(shape[0] for shape in fact.shapes), frozenset(shape[1] for shape in fact.shapes)
        return _Route(mask, sizes)

    def _selected(self, call: ast.Call, several: bool) -> ast.expr | None:
        """The mask whose places a call gives, as one index for each axis or as a table."""
        options = {k.arg: isinstance(k.value, ast.Constant) and k.value.value for k in call.keywords}
        dotted = self.facts.dotted.get(span_of(call.func, self.file.lines), "")
        if not set(options) <= {"as_tuple"}:
            return None
        if dotted == "torch.where":
            return call.args[0] if len(call.args) == 1 and several and not options else None
        if options.get("as_tuple", False) is not several:
            return None
        if dotted == "torch.nonzero":
            return call.args[0] if len(call.args) == 1 else None
        method = isinstance(call.func, ast.Attribute) and call.func.attr == "nonzero" and not call.args and not dotted
        return call.func.value if method and isinstance(call.func, ast.Attribute) else None

    # -- the statements ---------------------------------------------------------------------------------------------

    def _follow(self, route: _Route, body: list[ast.stmt], position: int, holder: ast.AST) -> ast.If | None:
        """Goes through what stands behind the selection. Gives the `if mask.any():` around it; raises `Mixed` where rows may be seen otherwise."""
        before, after = body[:position], body[position + 1 :]
        self._name_axes(route, after)
        around = holder if isinstance(holder, ast.If) and self._asks(route, holder, positive=True) else None
        if around is not None and any(around in node.orelse for node in walk(self.function) if isinstance(node, ast.If)):
            raise Mixed
        head = next((i for i, node in enumerate(before) if self._skips(route, node, holder)), None)
        if isinstance(holder, ast.For) and self._goes_through_chosen(route, holder):
            route.loop, head = holder, 0
        guarded = around is not None or head is not None
        before = before if around is not None else before[head:] if head is not None else []
        for node in before:
            self._before(route, node, holder)
        for node in after:
            guarded |= self._skips(route, node, holder)
            self._statement(route, node, holder)
        if not route.sums or any(level in (ROWS, SLOTS) for name, level in route.levels.items() if name not in route.axes):
            raise Mixed
        route.guarded = guarded
        self._check_names(route, [*before, body[position], *after], guarded)
        if isinstance(route.mask, ast.Name) and any(self._stores(node, route.mask.id) for node in after):
            raise Mixed
        return around

    def _name_axes(self, route: _Route, after: list[ast.stmt]) -> None:
        """Which of the indices is that of the rows: the one by which results are added."""
        for node in after:
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Subscript(
                        value=ast.Name(id=table),
                        slice=ast.Tuple(elts=[ast.Slice(lower=None, upper=None), ast.Constant(value=int() as axis)]),
                    ),
                ) if route.levels.get(table) == PLACES:
                    route.axes[name] = axis
                    route.dropped.append(node)
                case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=once), ast.Name(id=inverse)])], value=ast.Call() as call) if (
                    name := self._made_unique(route, call)
                ):
                    route.levels |= {once: ONCE, inverse: INVERSE}
                    route.rows_axis = route.axes[name]
                    route.dropped.append(node)
        sinks = {name for node in after for name in self._index_of_sum(node)} & route.axes.keys()
        if len(sinks) > 1 or len(set(route.axes.values())) != len(route.axes) or not route.axes:
            raise Mixed
        if sinks:
            axis = route.axes[sinks.pop()]
            if ONCE in route.levels.values() and axis != route.rows_axis:
                raise Mixed
            route.rows_axis = axis
        route.levels |= {name: ROWS if axis == route.rows_axis else SLOTS for name, axis in route.axes.items()}

    def _made_unique(self, route: _Route, call: ast.Call) -> str:
        """`rows` of `torch.unique(rows, return_inverse=True)`."""
        options = {k.arg: isinstance(k.value, ast.Constant) and k.value.value for k in call.keywords}
        dotted = self.facts.dotted.get(span_of(call.func, self.file.lines), "")
        match call.args:
            case [ast.Name(id=name)] if dotted == "torch.unique" and options.get("return_inverse") is True:
                return name if name in route.axes and set(options) <= {"return_inverse", "sorted"} else ""
        return ""

    def _index_of_sum(self, node: ast.stmt) -> list[str]:
        """`rows` of `out[rows] += …` and `out.index_add_(0, rows, …)`."""
        match node:
            case ast.AugAssign(target=ast.Subscript(value=ast.Name(), slice=index), op=ast.Add()):
                first, rest = (index.elts[0], index.elts[1:]) if isinstance(index, ast.Tuple) and index.elts else (index, [])
                return [first.id] if isinstance(first, ast.Name) and all(_is_full(part) for part in rest) else []
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(), attr="index_add_"), args=args, keywords=[])):
                match args:
                    case [ast.Constant(value=0), ast.Name(id=name), _]:
                        return [name]
        return []

    def _statement(self, route: _Route, node: ast.stmt, holder: ast.AST) -> None:
        if any(node is one for one in route.dropped):
            return
        if names := self._index_of_sum(node):
            self._sum(route, node, names[0])
            return
        match node:
            case ast.If() if self._skips(route, node, holder):
                route.dropped.append(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if self._is_zeros(route, call):
                route.levels[name] = ZEROS
                route.dropped.append(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._bind(route, name, self.level(route, value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=ast.Mult(), value=value):
                self._bind(route, name, self._product(self.level(route, target), self.level(route, value)))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="scatter_add_"), args=args)):
                self._total(route, node, name, args)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name) as target, attr="mul_"), args=[value], keywords=[])):
                self._bind(route, name, self._product(self.level(route, target), self.level(route, value)))
            case _:
                raise Mixed

    def _before(self, route: _Route, node: ast.stmt, holder: ast.AST) -> None:
        """A statement between the test whether there are rows and the selection."""
        match node:
            case ast.If() if self._skips(route, node, holder):
                route.dropped.append(node)
            case ast.Assign() if any(node is one for one in route.dropped):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not (isinstance(route.mask, ast.Name) and name == route.mask.id):
                self._nothing(route, value)
                route.local.add(name)
            case _:
                raise Mixed

    def _bind(self, route: _Route, name: str, level: str) -> None:
        if level in (ROW, WEIGHT, SUM):
            route.levels[name] = level
        elif level or name in route.levels:
            raise Mixed
        else:
            route.local.add(name)

    def _sum(self, route: _Route, node: ast.stmt, index: str) -> None:
        """`out[rows] += value`: `out` has all rows, and the value is weighed."""
        value = node.value if isinstance(node, ast.AugAssign) else node.value.args[2]  # type: ignore[attr-defined]
        out = _out(node)
        if route.levels.get(index) not in (ROWS, ONCE) or self.level(route, value) != SUM or not self._has_all_rows(route, out):
            raise Mixed
        # What a row without weight adds must be an array of zeros of the same shape.
        ranks = {len(shape) for fact in (self._fact(out), self._fact(value)) if fact is not None for shape in fact.shapes}
        if len(ranks) != 1:
            raise Mixed
        route.sums.append(node)

    def _total(self, route: _Route, node: ast.stmt, name: str, args: list[ast.expr]) -> None:
        """`total.scatter_add_(0, inverse, weights)`: the sum of the weights of each row, which they are by now."""
        match args:
            case [ast.Constant(value=0), ast.Name(id=index), value] if (
                route.levels.get(index) == INVERSE and route.levels.get(name) == ZEROS
            ):
                if self.level(route, value) == WEIGHT and isinstance(value, ast.Name) and self._ranks(value) == {1}:
                    route.levels[name] = WEIGHT
                    route.totals.append(node)
                    return
        raise Mixed

    def _is_zeros(self, route: _Route, call: ast.Call) -> bool:
        """`torch.zeros(len(once), …)`, one for each row that is there."""
        match call.args:
            case (
                [ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)])]
                | [ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[ast.Constant(value=0)])]
                | [ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="numel"), args=[])]
                | [ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=0))]
            ) if route.levels.get(name) == ONCE:
                dotted = self.facts.dotted.get(span_of(call.func, self.file.lines), "")
                return dotted == "torch.zeros" or (isinstance(call.func, ast.Attribute) and call.func.attr == "new_zeros" and not dotted)
        return False

    # -- tests whether there are rows -------------------------------------------------------------------------------

    def _asks(self, route: _Route, node: ast.If, positive: bool) -> bool:
        asks = asks_for_any(node.test) if not node.orelse else None
        if asks is None or asks.positive is not positive:
            return False
        if asks.counts_rows:
            indices = {*route.axes, *(name for name, level in route.levels.items() if level in (PLACES, ONCE))}
            return isinstance(asks.of, ast.Name) and asks.of.id in indices
        return ast.unparse(asks.of) == ast.unparse(route.mask)

    def _skips(self, route: _Route, node: ast.stmt, holder: ast.AST) -> bool:
        """`if not mask.any(): continue`"""
        leaves = isinstance(node, ast.If) and all(isinstance(step, ast.Continue) for step in node.body) and isinstance(holder, ast.For)
        return leaves and isinstance(node, ast.If) and self._asks(route, node, positive=False)

    # -- loops over what is chosen ----------------------------------------------------------------------------------

    def _goes_through_chosen(self, route: _Route, loop: ast.For) -> bool:
        """Whether a loop goes through the first axis of the mask's array, where anything is selected: `for e in (table.sum(dim=(1, 2)) > 0).nonzero()`.

        Its other steps add nothing. Raises `Mixed` where they may do more.
        """
        match route.mask, loop:
            case (
                ast.Subscript(value=ast.Name(id=table), slice=ast.Name(id=index))
                | ast.Call(
                    func=ast.Attribute(value=ast.Subscript(value=ast.Name(id=table), slice=ast.Name(id=index)), attr="squeeze"),
                    args=[ast.Constant(value=0)],
                ),
                ast.For(target=ast.Name(id=target), iter=ast.Name(id=chosen), orelse=[]),
            ) if index == target:
                pass
            case _:
                return False
        names = [node for node in walk(self.function) if isinstance(node, ast.Name)]
        stores = [(holder, node) for holder in walk(self.function) for node in _assignments(holder) if node.targets[0].id == chosen]  # type: ignore[attr-defined]
        named = [node for node in names if node.id == chosen]
        if len(stores) != 1 or len(named) != AXES or not self._is_where_any(stores[0][1].value, table):
            return False
        (holder, binding), body = stores[0], loop.body
        later = any(n.id == table and isinstance(n.ctx, ast.Store) and n.lineno >= binding.lineno for n in names)
        if (
            later
            or len(getattr(holder, "body", [])) < AXES
            or any(n.id == table and n.lineno > binding.lineno and n.lineno < loop.lineno for n in names)
        ):
            raise Mixed
        first = body[0]
        if isinstance(first, ast.Assign) and ast.unparse(first) == f"{target} = {target}[0]":
            route.dropped.append(first)
            body = body[1:]
        self._check_index(route, body, target)
        if isinstance(route.mask, ast.Call):
            if self._ranks(route.mask.func.value) != {AXES + 1}:  # type: ignore[attr-defined]
                raise Mixed
            route.reads.append(route.mask)
        route.dropped.append(binding)
        return True

    def _indexed_lists(self, route: _Route) -> Iterator[tuple[ast.For, str]]:
        """The loop around whose number is the index of a list of modules: a number past its end is no error where nothing is selected."""
        for loop in (node for node in walk(self.function) if isinstance(node, ast.For)):
            target = ast.unparse(loop.target)
            inside = walk(loop)
            ranged = isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"
            if (loop is not route.loop and not (ranged and len(loop.iter.args) == 1)) or route.dropped[0] not in inside:  # type: ignore[attr-defined]
                continue
            for node in inside:
                match node:
                    case ast.Subscript(value=ast.Attribute(value=ast.Name()) as modules, slice=ast.Name(id=index)) if index == target:
                        fact = self._fact(modules)
                        if fact is not None and set(fact.kinds) == {"module:torch.nn.ModuleList"}:
                            yield loop, ast.unparse(modules)
                            break

    def _check_index(self, route: _Route, body: list[ast.stmt], index: str) -> None:
        """An index of one number may only say which expert, and which part of the table: `layer = self.experts[e]`."""
        parents = {child: node for statement in body for node in ast.walk(statement) for child in ast.iter_child_nodes(node)}
        for node in (n for statement in body for n in walk(statement) if isinstance(n, ast.Name) and n.id == index):
            above = parents[node]
            if not isinstance(above, ast.Subscript) or above.slice is not node or not isinstance(node.ctx, ast.Load):
                raise Mixed
            fact = self._fact(above.value)
            modules = fact is not None and set(fact.kinds) == {"module:torch.nn.ModuleList"} and isinstance(parents[above], ast.Assign)
            if not modules and ast.unparse(above.value) != _table_of(route.mask):
                raise Mixed

    def _is_where_any(self, node: ast.expr, table: str) -> bool:
        """`(table.sum(dim=(-1, -2)) > 0).nonzero()`, in any of its spellings, of an array of whole numbers with three axes."""
        places = self._selected(node, several=False) if isinstance(node, ast.Call) else None
        match places:
            case ast.Compare(left=total, ops=[ast.Gt()], comparators=[ast.Constant(value=0)]):
                pass
            case ast.Call(func=ast.Attribute(attr="greater" | "gt"), args=[total, ast.Constant(value=0)]):
                pass
            case ast.Call(func=ast.Attribute(value=total, attr="greater" | "gt"), args=[ast.Constant(value=0)]):
                pass
            case _:
                return False
        match total:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name) as whole, attr="sum"), args=args, keywords=options) if name == table:
                axes = [*args, *(option.value for option in options if option.arg == "dim")]
                fact = self._fact(whole)
                counts = fact is not None and _counts(fact) and self._ranks(whole) == {AXES + 1}
                return counts and len(axes) == 1 and len(args) + len(options) == 1 and _literal(axes[0]) in LAST_TWO
        return False

    def _check_names(self, route: _Route, statements: Sequence[ast.stmt], guarded: bool) -> None:
        """No name of rows is read elsewhere, nor before it is bound; where a test goes, that holds for all names that are bound after it."""
        own = {id(node) for statement in statements for node in walk(statement)}
        bound = {*route.levels, *(route.local if guarded else ())}
        elsewhere = {n.id for n in walk(self.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in own}
        sinks = [_out(node) for node in route.sums]
        names = {sink.id for sink in sinks}
        static = {id(n.value) for one in statements for n in walk(one) if isinstance(n, ast.Attribute) and n.attr in ("dtype", "device")}
        read = [n for one in statements for n in walk(one) if isinstance(n, ast.Name) and n.id in names and id(n) not in static]
        if bound & (elsewhere | names) or bound & route.foreign or any(not any(n is sink for sink in sinks) for n in read):
            raise Mixed

    def _stores(self, node: ast.stmt, name: str) -> bool:
        return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in walk(node))

    # -- expressions ------------------------------------------------------------------------------------------------

    def level(self, route: _Route, node: ast.expr) -> str:
        """What an expression holds; raises `Mixed` where rows may depend on each other, or on how many there are."""
        match node:
            case ast.Name(id=name) if name in route.levels:
                if route.levels[name] not in (ROW, WEIGHT, SUM):
                    raise Mixed
                return route.levels[name]
            case ast.Name(id=name):
                route.foreign |= {name} - route.local
                return NOTHING
            case ast.Subscript():
                return self._part(route, node)
            case ast.UnaryOp(op=ast.USub(), operand=value):
                return self.level(route, value)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operation(route, left, op, right)
            case ast.Call():
                return self._call(route, node)
        return self._nothing(route, node)

    def _nothing(self, route: _Route, node: ast.AST) -> str:
        for child in ast.iter_child_nodes(node):
            if self.level(route, child) if isinstance(child, ast.expr) else self._nothing(route, child):
                raise Mixed
        return NOTHING

    def _part(self, route: _Route, node: ast.Subscript) -> str:
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kinds = [route.levels.get(part.id, "") if isinstance(part, ast.Name) else "" for part in index]
        if kinds[0] in (ROWS, ONCE) and not any(kinds[1:]) and all(_is_full(part) for part in index[1:]):
            return self._read(route, node)
        if kinds[:2] in ([ROWS, SLOTS], [SLOTS, ROWS]) and all(_is_none(part) for part in index[2:]):
            return self._weights(route, node, kinds[0] == ROWS, len(index) - 2)
        if any(kinds):
            raise Mixed
        level = self.level(route, node.value)
        for part in index:
            self._nothing(route, part) if not isinstance(part, ast.Name) else self.level(route, part) and _raise()
        if level == ROW and keeps_rows(index[0], list(index[1:])):
            return level
        if level in (WEIGHT, SUM) and keeps_rows(index[0], list(index[1:])) and all(_is_none(part) for part in index[1:]):
            return level
        if level:
            raise Mixed
        return NOTHING

    def _read(self, route: _Route, node: ast.Subscript) -> str:
        """`x[rows]`, where `x` has all rows and each has an axis at least."""
        ranks = self._ranks(node.value)
        if self._nothing(route, node.value) or not self._has_all_rows(route, node.value) or min(ranks) < AXES:
            raise Mixed
        route.reads.append(node)
        return ROW

    def _weights(self, route: _Route, node: ast.Subscript, rows_first: bool, new_axes: int) -> str:
        """`w[rows, slots]`, where `w` has the shape of the mask."""
        fact = self._fact(node.value)
        turned = (route.rows_axis == 0) is not rows_first
        sizes = route.size[::-1] if turned else route.size
        if self._nothing(route, node.value) or fact is None or not is_tensor(fact) or {len(shape) for shape in fact.shapes} != {AXES}:
            raise Mixed
        if tuple(frozenset(shape[axis] for shape in fact.shapes) for axis in range(AXES)) != sizes:
            raise Mixed
        route.weights[self._span(node)] = Weights(self._span(route.mask), turned, 1 if rows_first else 0, new_axes)
        return WEIGHT

    def _operation(self, route: _Route, left: ast.expr, op: ast.operator, right: ast.expr) -> str:
        levels = self.level(route, left), self.level(route, right)
        if not any(levels):
            return NOTHING
        for one, other in ((left, levels[1]), (right, levels[0])):
            if other and not levels[0 if one is left else 1] and not self._broadcasts(one, right if one is left else left):
                raise Mixed
        if levels == (ROW, ROW) or (ROW in levels and NOTHING in levels):
            return self._matrix(op, levels) if isinstance(op, ast.MatMult) else ROW
        if isinstance(op, ast.Mult):
            return self._product(*levels)
        # A row that the mask does not select may be 0.
        if isinstance(op, ast.Div) and levels[1] == NOTHING:
            return levels[0]
        if isinstance(op, ast.Add | ast.Sub) and levels == (SUM, SUM):
            return SUM
        raise Mixed

    def _matrix(self, op: ast.operator, levels: tuple[str, str]) -> str:
        if levels != (ROW, NOTHING):
            raise Mixed
        return ROW

    def _product(self, first: str, second: str) -> str:
        """The level of a product: weights come in once."""
        levels = {first, second} - {NOTHING}
        if WEIGHT in (first, second) and first != second and SUM not in levels:
            return SUM if ROW in levels else WEIGHT
        if first != second and SUM in levels and WEIGHT not in levels:
            return SUM
        if levels == {ROW}:
            return ROW
        raise Mixed

    def _broadcasts(self, node: ast.expr, beside: ast.expr) -> bool:
        """Whether a value that is no row is one for all rows."""
        fact, other = self._fact(node), self._fact(beside)
        if fact is None or not is_tensor(fact):
            return fact is not None or isinstance(node, ast.Constant)
        ranks = {len(shape) for shape in other.shapes} if other is not None else set()
        return bool(fact.shapes) and bool(ranks) and all(len(shape) < min(ranks) or shape[0] == 1 for shape in fact.shapes)

    def _call(self, route: _Route, node: ast.Call) -> str:
        function = node.func
        dotted = self.facts.dotted.get(span_of(function, self.file.lines), "")
        arguments = [*node.args, *(option.value for option in node.keywords)]
        receiver = function.value if isinstance(function, ast.Attribute) and not dotted else None
        if receiver is not None and (level := self._reshaped(route, node, receiver)):
            return level
        levels = [self.level(route, argument) for argument in arguments]
        level = self.level(route, receiver) if receiver is not None else NOTHING
        if not level and not any(levels):
            return self._nothing(route, function) if receiver is None else NOTHING
        kinds = fact.kinds if (fact := self._fact(function)) is not None else ()
        if all(kind.startswith("module:") for kind in kinds) and kinds and levels == [ROW] and not level:
            if all(acts_on_rows(self.repo, kind.removeprefix("module:"), self.source, self.owner) for kind in kinds):
                return ROW
            raise Mixed
        name = function.attr if isinstance(function, ast.Attribute) else dotted.rpartition(".")[2]
        return self._torch_call(name, dotted, level, levels, node)

    def _torch_call(self, name: str, dotted: str, level: str, levels: list[str], node: ast.Call) -> str:
        if level and not any(levels):
            axis = ast.unparse(node.args[0]) if len(node.args) == 1 else ""
            if name in KEEPING or (name == "unsqueeze" and axis in ("-1", "1")):
                return level
        if level and name in ("mul", "multiply") and len(levels) == 1:
            return self._product(level, levels[0])
        if {level, *levels} == {ROW, NOTHING} or {level, *levels} == {ROW}:
            if (dotted.startswith("torch.") or level) and name in POINTWISE:
                return ROW
        raise Mixed

    def _reshaped(self, route: _Route, call: ast.Call, receiver: ast.expr) -> str:
        """`x[None, rows].reshape(-1, width)` gives the rows again, and `weights.view(-1, 1)` the weights with an axis behind."""
        args, name = call.args, call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name not in ("reshape", "view") or len(args) != AXES or ast.unparse(args[0]) != "-1":
            return NOTHING
        match receiver:
            case ast.Subscript(value=whole, slice=ast.Tuple(elts=[first, ast.Name(id=name)])) if (
                _is_none(first) and route.levels.get(name) == ROWS
            ):
                fact, result = self._fact(whole), self._fact(call)
                if self._nothing(route, whole) or self._nothing(route, args[1]) or not self._has_all_rows(route, whole):
                    raise Mixed
                wide = {shape[1] for shape in fact.shapes} if fact is not None and self._ranks(whole) == {AXES} else set()
                result_widths = {shape[-1] for shape in result.shapes} if result is not None else set()
                if len(wide) != 1 or result_widths != wide:
                    raise Mixed
                route.reads += [receiver, call]
                return ROW
            case ast.Name(id=name) if route.levels.get(name) == WEIGHT and ast.unparse(args[1]) == "1" and self._ranks(receiver) == {1}:
                return WEIGHT
            case ast.Subscript() if ast.unparse(args[1]) == "1" and self._ranks(receiver) == {1}:
                return WEIGHT if self.level(route, receiver) == WEIGHT else _raise()
        return NOTHING

    def _has_all_rows(self, route: _Route, node: ast.expr) -> bool:
        fact = self._fact(node)
        return (
            fact is not None
            and is_tensor(fact)
            and bool(fact.shapes)
            and all(fact.shapes)
            and frozenset(shape[0] for shape in fact.shapes) == route.size[route.rows_axis]
        )

    def _ranks(self, node: ast.expr) -> set[int]:
        fact = self._fact(node)
        return {len(shape) for shape in fact.shapes} if fact is not None else set()

    def _fact(self, node: ast.AST) -> Observed | None:
        return self.facts.observed.get(self._span(node)) if hasattr(node, "lineno") else None

    def _span(self, node: ast.AST) -> Span:
        return span_of(node, self.file.lines)


def routed_rows(repo: Repo, source: FileFacts, function: FunctionNode, owner: ClassModel | None) -> Routes:
    """What of a function may be given all rows, with a weight of 0 for those that its masks do not select."""
    selects = any(isinstance(node, ast.Attribute) and node.attr in ("where", "nonzero") for node in walk(function))
    return _Search(repo, source, function, owner).routes() if selects else Routes()


def _out(node: ast.stmt) -> ast.Name:
    """`out` of `out[rows] += …` and `out.index_add_(0, rows, …)`."""
    out = node.target.value if isinstance(node, ast.AugAssign) else node.value.func.value  # type: ignore[attr-defined,union-attr]
    assert isinstance(out, ast.Name)
    return out


def _assignments(holder: ast.AST) -> list[ast.Assign]:
    """The statements of a block that bind one name."""
    body = getattr(holder, "body", None)
    return [
        node
        for node in (body if isinstance(body, list) else ())
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    ]


def _literal(node: ast.expr) -> frozenset[object]:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return frozenset()
    return frozenset(value) if isinstance(value, tuple | list) else frozenset()


def _table_of(mask: ast.expr) -> str:
    """`table` of `table[e]` and `table[e].squeeze(0)`."""
    part = mask.func.value if isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute) else mask
    return ast.unparse(part.value) if isinstance(part, ast.Subscript) else ""


def _call_of(node: ast.stmt) -> ast.AST:
    return node.value if isinstance(node, ast.Expr | ast.Assign) else node


def _counts(fact: Observed) -> bool:
    return is_tensor(fact) and set(fact.dtypes) <= {"bool", "int64", "int32", "uint8"}


def _is_full(node: ast.expr) -> bool:
    """`:` or `...`"""
    if isinstance(node, ast.Slice):
        return node.lower is node.upper is node.step is None
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _raise() -> str:
    raise Mixed
