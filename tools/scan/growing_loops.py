"""Finds loops that feed a sequence to a function and append what its last element gave: the sampling loops of autoregressive models.

    for _ in range(count):
        context = tokens if tokens.size(1) <= limit else tokens[:, -limit:]
        logits = model(context)[:, -1]
        tokens = torch.cat((tokens, sample(logits)), dim=1)

Such a loop may run over a buffer of its final length where the function is causal: what stands behind the last element then changes nothing.
Whether it is causal is seen while the examples run (`tools/record/causality.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from migrate_agent.tools.scan.nodes import walk

JOINS = frozenset({"cat", "concat", "concatenate"})
LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.With, ast.Raise, ast.Delete)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Global, ast.Nonlocal, ast.NamedExpr)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Context:
    """An expression that reads the sequence: all of it, or the last `limit` elements where it is longer."""

    node: ast.expr
    limit: ast.expr | None
    axis: int | None
    """The axis that is cut, where it is."""


@dataclass(frozen=True)
class Reading:
    """A call that is handed a context, and of whose result only the last element is read.

    `argument` is the call's argument that is the context: its number, or its keyword. `part` says which part of the result is read: an index,
    an attribute, or a key; `None` for the whole.
    """

    call: ast.Call
    argument: int | str
    part: int | str | None
    reads: tuple[ast.Subscript, ...]
    """The expressions that take the last element."""
    axis: int
    """The axis of the result at which `-1` stands."""


@dataclass(frozen=True)
class GrowingLoop:
    """A loop that appends one element to a sequence in each step."""

    loop: ast.For
    sequence: str
    axis: int
    """The axis along which it grows, as the source says it: it may count from the end."""
    start: ast.expr | None
    stop: ast.expr
    growth: ast.Assign
    appended: ast.expr
    contexts: tuple[Context, ...]
    readings: tuple[Reading, ...]
    ends: tuple[ast.Subscript, ...]
    """Expressions that read the last element of the sequence itself."""
    carried: tuple[str, ...]
    """The other names that a step hands on to the next one, or to what follows the loop."""


def growing_loops(function: ast.AST) -> tuple[GrowingLoop, ...]:
    """The growing loops of a function, those of functions inside it left out."""
    loops = (node for node in _own(function) if isinstance(node, ast.For))
    return tuple(growing for loop in loops if (growing := _growing(function, loop)) is not None)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, SCOPES):
            yield from _own(child)


def _growing(function: ast.AST, loop: ast.For) -> GrowingLoop | None:
    bounds = _bounds(function, loop)
    nodes = [node for statement in loop.body for node in walk(statement)]
    if bounds is None or any(isinstance(node, (*LEAVES, *SCOPES, *COMPREHENSIONS, ast.For, ast.While)) for node in nodes):
        return None
    growths = [row for row in map(_growth, loop.body) if row is not None]
    if len(growths) != 1 or not all(map(_binds_names, _statements(loop.body))):
        return None
    growth, sequence, appended, axis = growths[0]
    if sum(name == sequence for name in _stored(nodes)) != 1 or growth is not loop.body[-1]:
        return None
    reads = _Reads(loop, sequence, growth)
    carried = _carried(function, loop, sequence)
    if not reads.understood or carried is None or not (reads.contexts or reads.ends):
        return None
    return GrowingLoop(
        loop, sequence, axis, *bounds, growth, appended, tuple(reads.contexts), tuple(reads.readings), tuple(reads.ends), carried
    )


def _bounds(function: ast.AST, loop: ast.For) -> tuple[ast.expr | None, ast.expr] | None:
    """Start and stop of `range(stop)` or `range(start, stop)`, where nobody asks for the number of the step."""
    if loop.orelse or not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Call):
        return None
    counted = isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range" and not loop.iter.keywords
    if not counted or any(_reads(node, loop.target.id) and getattr(node, "lineno", 0) >= loop.lineno for node in walk(function)):
        return None
    match loop.iter.args:
        case [stop] if not isinstance(stop, ast.Starred):
            return None, stop
        case [start, stop]:
            return start, stop
    return None


def _growth(statement: ast.stmt) -> tuple[ast.Assign, str, ast.expr, int] | None:
    """`x = torch.cat((x, y), dim=1)`: the statement, the name of `x`, the expression of `y`, and the axis."""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(
                func=ast.Attribute(attr=attr), args=[ast.Tuple(elts=[first, second]) | ast.List(elts=[first, second]), *rest]
            ) as call,
        ) if attr in JOINS:
            pass
        case _:
            return None
    axes = [*rest, *(keyword.value for keyword in call.keywords if keyword.arg in ("dim", "axis"))]
    if len(axes) > 1 or len(call.keywords) + len(rest) > 1 or not (isinstance(first, ast.Name) and first.id == name):
        return None
    axis = _integer(axes[0]) if axes else 0
    return None if axis is None or any(isinstance(node, ast.Starred) for node in (first, second)) else (statement, name, second, axis)


def _integer(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if not isinstance(value, bool):
            return -value
    return None


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from _statements([*statement.body, *statement.orelse])


def _binds_names(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but bind local names, or change tensors that local names stand for."""
    if isinstance(statement, (ast.If, ast.Pass)):
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        return False
    return all(isinstance(node, ast.Name) for target in targets for node in _places(target))


def _places(target: ast.expr | None) -> Iterator[ast.expr | None]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _places(element)
    elif isinstance(target, ast.Subscript):
        yield from _places(target.value)
    else:
        yield target


def _stored(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """The names that these nodes bind, or whose tensors they change."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield from (target.id for target in _places(node) if isinstance(target, ast.Name))


class _Reads:
    """What the body of a loop does with the sequence; `understood` where each read of it is of a form that has its like over a buffer."""

    def __init__(self, loop: ast.For, sequence: str, growth: ast.Assign) -> None:
        self.loop, self.sequence = loop, sequence
        self.contexts: list[Context] = []
        self.readings: list[Reading] = []
        self.ends: list[ast.Subscript] = []
        self._parents = {id(child): node for statement in loop.body for node in walk(statement) for child in ast.iter_child_nodes(node)}
        first = growth.value.args[0].elts[0]  # type: ignore[attr-defined]
        names = [node for statement in loop.body for node in walk(statement) if _reads(node, sequence) and node is not first]
        self.understood = self._take(names)

    def _take(self, names: Sequence[ast.AST]) -> bool:
        visited: set[int] = set()
        for name in names:
            if id(name) in visited:
                continue
            context = self._context(name)
            if context is None:
                return False
            visited |= {id(node) for node in ast.walk(context.node)}
            if isinstance(context.node, ast.Subscript) and context.limit is None:
                self.ends.append(context.node)
                continue
            self.contexts.append(context)
            if not self._handed(context.node):
                return False
        return True

    def _context(self, name: ast.AST) -> Context | None:
        """The context that a read of the sequence belongs to."""
        node: ast.AST | None = name
        while node is not None and not isinstance(node, (ast.IfExp, ast.stmt)):
            node = self._parents.get(id(node))
        if isinstance(node, ast.IfExp) and (context := _choice(node, self.sequence)) is not None:
            return context
        outer = self._parents.get(id(name))
        if isinstance(outer, ast.Subscript) and outer.value is name:
            return _cut(outer)
        plain = isinstance(outer, (ast.Call, ast.keyword)) or (isinstance(outer, ast.Assign) and outer.value is name)
        return Context(name, None, None) if plain and isinstance(name, ast.expr) else None

    def _handed(self, node: ast.expr) -> bool:
        """Whether calls alone get this context, and each result is read at its end alone."""
        outer = self._parents[id(node)]
        if not isinstance(outer, ast.Assign):
            return self._called(node)
        if len(outer.targets) != 1 or not isinstance(outer.targets[0], ast.Name) or outer not in self.loop.body:
            return False
        name = outer.targets[0].id
        nodes = [inner for statement in self.loop.body for inner in walk(statement)]
        uses = [use for use in nodes if _reads(use, name)]
        once = sum(stored == name for stored in _stored(nodes)) == 1
        return once and bool(uses) and all(isinstance(use, ast.Name) and self._called(use) for use in uses)

    def _called(self, node: ast.expr) -> bool:
        outer = self._parents[id(node)]
        call = self._parents[id(outer)] if isinstance(outer, ast.keyword) else outer
        if not isinstance(call, ast.Call) or call.func is node or any(isinstance(argument, ast.Starred) for argument in call.args):
            return False
        argument: int | str | None = outer.arg if isinstance(outer, ast.keyword) else call.args.index(node)
        reading = None if argument is None else self._reading(call, argument)
        if reading is not None:
            self.readings.append(reading)
        return reading is not None

    def _reading(self, call: ast.Call, argument: int | str) -> Reading | None:
        node: ast.AST = call
        outer = self._parents[id(call)]
        part = _part(outer, call)
        if part is not None:
            node, outer = outer, self._parents[id(outer)]
        if isinstance(outer, ast.Subscript) and outer.value is node:
            return _at_end(call, argument, part, [outer])
        if not isinstance(outer, ast.Assign) or outer.value is not node or len(outer.targets) != 1 or outer not in self.loop.body:
            return None
        name = outer.targets[0]
        if isinstance(name, ast.Tuple) and part is None:
            part, name = self._unpacked(name)
        uses = self._uses(outer, name.id) if isinstance(name, ast.Name) else None
        if not uses:
            return None
        if part is None and len(parts := {_part(self._parents[id(use)], use) for use in uses}) == 1:
            part = parts.pop()
            uses = uses if part is None else [self._parents[id(use)] for use in uses]
        reads = [self._parents[id(use)] for use in uses]
        plain = all(isinstance(read, ast.Subscript) and read.value is use for read, use in zip(reads, uses, strict=True))
        return _at_end(call, argument, part, reads) if plain else None  # type: ignore[arg-type]

    def _unpacked(self, target: ast.Tuple) -> tuple[int | None, ast.expr]:
        """The one name of several that is read anywhere, and its number."""
        read = {node.id for statement in self.loop.body for node in walk(statement) if isinstance(node, ast.Name) and _loads(node)}
        used = [(number, name) for number, name in enumerate(target.elts) if not isinstance(name, ast.Name) or name.id in read]
        return used[0] if len(used) == 1 else (None, target)

    def _uses(self, statement: ast.Assign, name: str) -> list[ast.AST] | None:
        """The reads of a name from its assignment on, up to the next one; `None` where that is in a branch, or an earlier step's value is read."""
        uses: list[ast.AST] = []
        for later in self.loop.body[self.loop.body.index(statement) + 1 :]:
            nodes = walk(later)
            uses += [node for node in nodes if _reads(node, name)]
            if name in _stored(nodes):
                whole = isinstance(later, ast.Assign) and all(isinstance(target, ast.Name) for target in later.targets)
                return uses if whole else None
        earlier = [node for before in self.loop.body[: self.loop.body.index(statement) + 1] for node in walk(before)]
        return None if any(_reads(node, name) for node in earlier) else uses


def _loads(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and _loads(node)


def _cut(node: ast.Subscript) -> Context | None:
    """`x[:, -limit:]`; of the last element alone, `x[:, -1:]` or `x[:, -1]`, a context without limit."""
    position = _position(node)
    if position is None or not isinstance(node.ctx, ast.Load):
        return None
    axis, entry = position
    lower = entry.lower if isinstance(entry, ast.Slice) else entry
    if lower is not None and _integer(lower) == -1:
        return Context(node, None, axis)
    match entry:
        case ast.Slice(lower=ast.UnaryOp(op=ast.USub(), operand=limit), upper=None, step=None):
            return Context(node, limit, axis)
    return None


def _position(node: ast.Subscript) -> tuple[int, ast.expr] | None:
    """The one entry of a subscript that is no `:`, and its axis."""
    entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    others = [(axis, entry) for axis, entry in enumerate(entries) if not _whole(entry)]
    if len(others) != 1 or any(isinstance(entry, ast.Constant) and entry.value in (None, ...) for entry in entries):
        return None
    return others[0]


def _whole(entry: ast.expr) -> bool:
    return isinstance(entry, ast.Slice) and entry.lower is entry.upper is entry.step is None


def _choice(node: ast.IfExp, sequence: str) -> Context | None:
    """`x if x.size(1) <= limit else x[:, -limit:]`, and with the two sides exchanged."""
    plain, cut, within = node.body, node.orelse, (ast.LtE, ast.Lt)
    if isinstance(plain, ast.Subscript):
        plain, cut, within = cut, plain, (ast.Gt, ast.GtE)  # type: ignore[assignment]
    context = _cut(cut) if isinstance(cut, ast.Subscript) and _reads(cut.value, sequence) else None
    if context is None or context.limit is None or not _reads(plain, sequence):
        return None
    match node.test:
        case ast.Compare(left=left, ops=[operator], comparators=[limit]) if isinstance(operator, within):
            alike = ast.dump(limit) == ast.dump(context.limit) and _length(left, sequence) == context.axis
            return Context(node, context.limit, context.axis) if alike else None
    return None


def _length(node: ast.expr, sequence: str) -> int | None:
    """The axis of which this is the length: `x.size(1)`, `x.shape[1]`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[axis], keywords=[]) if name == sequence:
            return _integer(axis)
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=axis) if name == sequence:
            return _integer(axis)
    return None


def _part(outer: ast.AST, call: ast.AST) -> int | str | None:
    """Which part of a call's result this takes: `f(x)[0]`, `f(x)["logits"]`, `f(x).logits`."""
    match outer:
        case ast.Subscript(value=value, slice=ast.Constant(value=int() | str() as key)) if value is call:
            return key
        case ast.Attribute(value=value, attr=attr) if value is call:
            return attr
    return None


def _at_end(call: ast.Call, argument: int | str, part: int | str | None, reads: Sequence[ast.Subscript]) -> Reading | None:
    """The reading, where each subscript takes the last element along one and the same axis."""
    axes = [_last(read) for read in reads]
    if None in axes or len(set(axes)) != 1:
        return None
    return Reading(call, argument, part, tuple(reads), axes[0])  # type: ignore[arg-type]


def _last(node: ast.Subscript) -> int | None:
    """The axis at which `-1` stands in `x[:, -1]`, `x[:, -1, :n]` or `x[:, -1:]`."""
    entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    ends = [(axis, entry) for axis, entry in enumerate(entries) if _integer(entry) == -1]
    plain = all(isinstance(entry, ast.Slice) or _integer(entry) is not None for entry in entries)
    if len(ends) == 1 and plain:
        return ends[0][0]
    match _position(node):
        case axis, ast.Slice(lower=ast.expr() as lower, upper=None, step=None) if _integer(lower) == -1:
            return axis
    return None


def _carried(function: ast.AST, loop: ast.For, sequence: str) -> tuple[str, ...] | None:
    """The names besides the sequence that live longer than one step; `None` where one has no value before the loop."""
    inside = {id(node) for statement in loop.body for node in walk(statement)}
    names = dict.fromkeys(name for name in _stored([node for statement in loop.body for node in walk(statement)]) if name != sequence)
    outside = {node.id for node in walk(function) if isinstance(node, ast.Name) and _loads(node) and id(node) not in inside}
    carried = tuple(name for name in names if name in outside or _exposed(loop.body, name))
    return carried if all(_bound_before(function, loop, name) for name in (*carried, sequence)) else None


def _exposed(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether a step may read the value that an earlier step gave this name."""
    return _first_use(body, name) == "read"


def _first_use(body: Sequence[ast.stmt], name: str) -> Literal["read", "bound", ""]:
    """Whether statements read a name before they bind it, or bind it in any case; "" where they do neither."""
    for statement in body:
        if isinstance(statement, ast.If):
            sides = [_first_use(side, name) for side in (statement.body, statement.orelse)]
            if "read" in sides or any(_reads(node, name) for node in walk(statement.test)):
                return "read"
            if sides == ["bound", "bound"]:
                return "bound"
            continue
        nodes = walk(statement)
        changed = isinstance(statement, ast.AugAssign) or any(isinstance(node, ast.Subscript) and not _plain(node) for node in nodes)
        if any(_reads(node, name) for node in nodes) or (changed and name in _stored(nodes)):
            return "read"
        if name in _stored(nodes):
            return "bound"
    return ""


def _plain(node: ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Load)


def _bound_before(function: ast.AST, loop: ast.For, name: str) -> bool:
    arguments = getattr(function, "args", None)
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs] if arguments is not None else []
    stores = (node for node in walk(function) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
    return any(parameter.arg == name for parameter in parameters) or any(node.lineno < loop.lineno for node in stores)
