"""How many dimensions an argument has, by what the code does with it: `a.t()` has two, `b, c, h, w = x.shape` says four."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, NamedTuple

from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.reads import arguments, called_part
from migrate_agent.tools.record.guessing.trials.steps_asked import counters
from migrate_agent.tools.record.guessing.values import Tensor

DEPTH = 4
"""Through how many calls of methods and parts, one inside the other, an argument is followed."""
PRODUCTS = MappingProxyType({"mm": 2, "spmm": 2, "t": 2, "bmm": 3})
"""Methods, and functions of torch, whose operands have a rank of their own."""
LAYERS = MappingProxyType(
    {"Conv1d": 3, "ConvTranspose1d": 3, "Conv2d": 4, "ConvTranspose2d": 4, "BatchNorm2d": 4, "Conv3d": 5, "BatchNorm3d": 5}
)
STATES = MappingProxyType({"RNNCell": 2, "GRUCell": 2, "LSTMCell": 2, "RNN": 3, "GRU": 3, "LSTM": 3})
"""The axes of the states of recurrent layers."""
RECURRENT, RECURRENT_RANK = frozenset({"RNN", "GRU", "LSTM"}), 3
KEEPING_LAYERS = frozenset("Linear LayerNorm Dropout Identity ReLU ReLU6 LeakyReLU PReLU ELU GELU SiLU Sigmoid Tanh Softmax".split())
KEEPING = frozenset(
    "relu relu6 leaky_relu elu selu gelu silu sigmoid tanh softmax log_softmax softplus dropout normalize layer_norm exp log sqrt rsqrt square pow sin cos"
    " erf abs neg floor ceil round clamp float double half long to cuda cpu contiguous clone detach type type_as tolist numpy index_select".split()
)
"""Layers, functions and methods that keep the number of axes."""
CHANGING = MappingProxyType({"unsqueeze": 1, "squeeze": -1})
"""By how much others change it, where they are told of one axis."""
MOST_OF_SEQUENCES = 3
"""Axes that an input of sequences has at most: an image has more."""
FEW = 2
"""A length that all sequences have."""
PACKING = "pack_padded_sequence"
ADDED = 16
"""The size of a dimension that an input lacked."""


class Ask(Enum):
    """How a use asks for a rank: a layer for its own, whose first axis is that of the samples; other code for one, or for one at least; packing for the
    lengths of sequences, which are the rows or the columns of what it packs."""

    LAYER = auto()
    EXACT = auto()
    LEAST = auto()
    LENGTHS = auto()
    LENGTHS_OF_COLUMNS = auto()


class Ranks(NamedTuple):
    """The rank that the code asks for, 0 where it asks for none or for several; and the least that it needs. `samples`: a layer asks, whose first axis is
    that of the samples. `lengths`: they are the lengths of sequences; `columns`: of those that are columns."""

    exact: int = 0
    least: int = 0
    samples: bool = False
    lengths: bool = False
    columns: bool = False

    def fit(self, shape: Sequence[int]) -> bool:
        """Whether the code may take a tensor of this shape."""
        return (not self.exact or len(shape) == self.exact) and len(shape) >= self.least


def ranks_of(called: Any, instance: Any, name: str) -> Ranks:
    """What the code of a function, and of the methods of `instance` that it hands the argument to, says of the rank of one argument."""
    uses = _Walk(called, instance, {name: 0}, DEPTH).uses
    exact = {rank for rank, ask in uses if ask in (Ask.LAYER, Ask.EXACT)}
    samples = len(exact) == 1 and not any(ask is Ask.EXACT for _, ask in uses)
    columns = any(ask is Ask.LENGTHS_OF_COLUMNS for _, ask in uses)
    lengths = columns or any(ask is Ask.LENGTHS for _, ask in uses)
    least = max((rank for rank, ask in uses if ask is Ask.LEAST), default=0)
    return Ranks(exact.pop() if len(exact) == 1 else 0, least, samples, lengths, columns)


def lengths_within(main: Tensor, columns: bool = False) -> tuple[str, ...]:
    """Lengths of sequences beside a main input, the longest first, as packing wants them: up to its own length, and short ones. First those of `columns`,
    where the code packs them, which may be what it turned an input of rows into."""
    batch, most = (main.shape or (2,))[0], main.shape[-1] if len(main.shape) > MOST_OF_SEQUENCES else (*main.shape, ADDED, ADDED)[1]
    turned = [(most, batch)] if columns and 1 < len(main.shape) <= MOST_OF_SEQUENCES else []
    pairs = [*turned, (batch, most), (batch, FEW)]
    rows = ([max(longest - at, 1) for at in range(count)] for count, longest in pairs)
    return tuple(dict.fromkeys(f"torch.tensor({row})" for row in rows))


def ranked(ranks: Ranks, main: Tensor) -> Iterator[Tensor]:
    """Tensors of the rank that is asked for, with the sizes of the main input; those between its nodes first."""
    shape, rank = main.shape, ranks.exact or ranks.least
    if rank == 2 and len(shape) > 2:
        shapes: tuple[tuple[int, ...], ...] = ((shape[-2], shape[-2]), (shape[0], shape[-1]), (shape[-2], shape[-1]))
        shapes = shapes[ranks.samples :]
    elif rank <= len(shape):
        shapes = (shape[:rank], shape[len(shape) - rank :])
    else:
        lacking = (ADDED,) * (rank - len(shape))
        shapes = ((*shape, *lacking), (*shape[:1], *lacking, *shape[1:]))
    yield from (Tensor(one, main.kind, main.high) for one in dict.fromkeys(shapes))


class _Walk:
    """Goes through the code of a function once, and follows what is made of some of its parameters: by how many axes more than an argument each name has."""

    def __init__(self, called: Any, instance: Any, more: Mapping[str, int], depth: int) -> None:
        """`more`: parameter → the axes that it has beyond the argument that is asked about. `depth`: through how many calls it goes further."""
        self.uses: set[tuple[int, Ask]] = set()
        """The ranks that the code asks of that argument."""
        self.returned: int | None = None
        """The axes that the first result which is told has beyond it."""
        self._instance, self._depth, self._more = instance, depth, dict(more)
        self._walks: dict[int, _Walk | None] = {}
        """By the id of a call: it is looked at as an expression and as part of others."""
        self._parts: dict[str, Any] = {}
        """Names of a loop over parts of the instance → the first of them."""
        self._counters: set[str] = set()
        """Names of loops over numbers."""
        self._orders: set[str] = set()
        """Names of orders of samples, by which sequences are sorted before they are packed."""
        for statement in _in_order(called):
            self._take(statement)

    def _take(self, statement: ast.stmt) -> None:
        nodes = [*_of_statement(statement)]
        self._counters |= {name for node in nodes for name in counters(node)}
        for node in nodes:
            for name, axes in self._more.items():
                self._ask(axes, _ranks_at(node, name))
            if isinstance(node, ast.Call):
                self._called_with(node)
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name() as first, ast.Name(id=order)])], value=value) if _is_sorting(value):
                self._assign([first], self._sorted_axes(value))
                self._orders.add(order)
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, self._axes(value))
            case ast.For(target=target, iter=rows):
                self._parts |= _first_parts(target, rows, self._instance)
            case ast.Return(value=ast.expr() as value) if self.returned is None:
                self.returned = self._axes(value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value)

    def _sorted_axes(self, call: ast.expr) -> int | None:
        """The axes of what `lengths.sort(descending=True)`, or `torch.sort(lengths)`, sorts."""
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch")), args=[value, *_]) | ast.Call(func=ast.Attribute(value=value)):
                return self._axes(value)
        return None

    def _ask(self, axes: int, uses: Iterable[tuple[int, Ask]]) -> None:
        self.uses |= {(rank - axes, ask) for rank, ask in uses if rank > axes}

    def _assign(self, targets: Sequence[ast.expr], axes: int | None) -> None:
        """Follow what is made of the names that are followed; what is assigned anew is another value."""
        for target in targets:
            for name in [name for name in self._more if _names(target, name)]:
                del self._more[name]
            if isinstance(target, ast.Name) and axes is not None:
                self._more[target.id] = axes

    def _called_with(self, call: ast.Call) -> None:
        """Take in what a layer asks of its input, and what the code of a method or part does with its arguments."""
        part = self._part(call.func)
        if (rank := LAYERS.get(type(part).__name__)) and call.args and (axes := self._axes(call.args[0])) is not None:
            self._ask(axes, ((rank, Ask.LAYER),))
        if type(part).__name__ in RECURRENT and call.args and (axes := self._axes(call.args[0])) is not None:
            self._ask(axes, ((RECURRENT_RANK, Ask.LAYER),))
        if PACKING in (getattr(call.func, "attr", ""), getattr(call.func, "id", "")):
            keywords = {keyword.arg: keyword.value for keyword in call.keywords}
            rows = keywords.get("batch_first", call.args[2] if len(call.args) > 2 else None)
            of_lengths = Ask.LENGTHS_OF_COLUMNS if rows is None or ast.unparse(rows) == "False" else Ask.LENGTHS
            for at, name, use in ((0, "input", (RECURRENT_RANK, Ask.LAYER)), (1, "lengths", (1, of_lengths))):
                argument = call.args[at] if at < len(call.args) else keywords.get(name)
                if argument is not None and (axes := self._axes(argument)) is not None:
                    self._ask(axes, (use,))
        if (rank := STATES.get(type(part).__name__)) and len(call.args) > 1:
            for state in call.args[1].elts if isinstance(call.args[1], ast.Tuple) else call.args[1:2]:
                if (axes := self._axes(state)) is not None:
                    self._ask(axes, ((rank, Ask.LAYER),))
        if isinstance(call.func, ast.Attribute) and (axes := self._axes(call.func.value)) is not None and (rank := _spread(call, axes)):
            self._ask(axes, ((rank, Ask.EXACT),))
        if (walk := self._walk(call)) is not None:
            self.uses |= walk.uses

    def _walk(self, call: ast.Call) -> _Walk | None:
        """The walk through the code of a method or part of the instance that something followed is handed to."""
        if id(call) not in self._walks:
            self._walks[id(call)] = self._walked(call) if self._depth else None
        return self._walks[id(call)]

    def _walked(self, call: ast.Call) -> _Walk | None:
        part = self._part(call.func)
        called, owner = (getattr(type(part), "forward", None), part) if part is not None else (self._method(call.func), self._instance)
        if not inspect.isfunction(called) or (called.__module__ or "").startswith("torch."):
            return None
        followed = {name: axes for name, value in arguments(called, call) if (axes := self._axes(value)) is not None}
        return _Walk(called, owner, followed, self._depth - 1) if followed else None

    def _part(self, function: ast.expr) -> Any:
        """The part of the instance that is called, the first one of several in a row."""
        part = called_part(function, self._instance, self._parts)
        while type(part).__name__ == "Sequential" and len(part):
            part = part[0]
        return part if hasattr(part, "forward") else None

    def _method(self, function: ast.expr) -> Any:
        match function:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return inspect.getattr_static(type(self._instance), name, None)
        return None

    def _axes(self, node: ast.expr) -> int | None:
        """How many axes more than the argument an expression has; `None` where that is not told."""
        match node:
            case ast.Name(id=name):
                return self._more.get(name)
            case ast.Attribute(value=value, attr="data"):
                return self._axes(value)
            case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                return self._most((left, right))
            case ast.Subscript(value=value, slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                inner, added = self._axes(value), _added(parts, self._counters, self._orders)
                return None if inner is None or added is None else inner + added
            case ast.Call(args=[ast.List(elts=values) | ast.Tuple(elts=values), *_], func=ast.Attribute(attr="cat")):
                return self._most(values)
            case ast.Call():
                return self._of_call(node)
        return None

    def _of_call(self, call: ast.Call) -> int | None:
        part = self._part(call.func)
        if part is not None and call.args and type(part).__name__ in (*KEEPING_LAYERS, "Embedding"):
            axes = self._axes(call.args[0])
            return axes if axes is None or type(part).__name__ in KEEPING_LAYERS else axes + 1
        if (walk := self._walk(call)) is not None:
            return walk.returned
        match call.func, call.args:
            case ((ast.Attribute(value=ast.Name(id="torch" | "F"), attr=method) | ast.Name(id=method)), [value, *rest]):
                return _after(method, rest, self._axes(value))
            case ast.Attribute(value=value, attr=method), rest:
                return _after(method, rest, self._axes(value))
        return None

    def _most(self, values: Iterable[ast.expr]) -> int | None:
        """Operands are broadcast to the one of most axes."""
        return max((axes for value in values if (axes := self._axes(value)) is not None), default=None)


def _spread(call: ast.Call, axes: int) -> int:
    """The rank that `x.expand(-1, -1, n)` and `x.unsqueeze(1).repeat(1, n, 1)` suggest, 0 where they suggest none."""
    sizes = call.args
    if any(isinstance(size, ast.Starred) for size in sizes) or len(sizes) < 2 or not isinstance(call.func, ast.Attribute):
        return 0
    expands = call.func.attr == "expand" and ast.unparse(sizes[0]) == "-1"
    return len(sizes) if expands or (call.func.attr == "repeat" and axes > 0) else 0


def _in_order(called: Any) -> list[ast.stmt]:
    """The statements of a function in the order of its text."""
    nodes = nodes_of(called) if called is not None else ()
    statements = [node for node in nodes if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return sorted(statements, key=lambda node: (node.lineno, node.col_offset))


def _of_statement(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of the statements in it."""
    row: list[ast.AST] = [statement]
    while row:
        node = row.pop()
        yield node
        row += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _first_parts(target: ast.expr, rows: ast.expr, instance: Any) -> dict[str, Any]:
    """The names of a loop over parts of the instance, each with the first of them: `for block in self.blocks`, with `zip` and `enumerate` too."""
    match target, rows:
        case ast.Name(id=name), ast.Attribute(value=ast.Name(id="self"), attr=attribute):
            row: Any = getattr(instance, attribute, None)
            return {name: row[0]} if type(row).__name__ in ("ModuleList", "list", "tuple") and len(row) else {}
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=several):
            several_parts = [_first_parts(one, row, instance) for one, row in zip(targets, several, strict=False)]
            return {name: part for parts in several_parts for name, part in parts.items()}
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[row, *_]):
            return _first_parts(inner, row, instance)
    return {}


def _after(method: str, rest: Sequence[ast.expr], axes: int | None) -> int | None:
    if axes is None or method in KEEPING:
        return axes
    return axes + CHANGING[method] if method in CHANGING and len(rest) == 1 else None


def _added(index: Sequence[ast.expr], numbers: Collection[str], orders: Collection[str]) -> int | None:
    """How many axes an index adds; `None` where that depends on what it holds."""
    added = 0
    for part in index:
        match part:
            case ast.Slice():
                continue
            case ast.Name(id=name) if name in orders:
                continue
            case ast.Constant(value=None):
                added += 1
            case ast.Constant(value=int()) | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int())):
                added -= 1
            case ast.Name(id=name) if name in numbers:
                added -= 1
            case _:
                return None
    return added


def _is_sorting(node: ast.expr) -> bool:
    """`lengths.sort(descending=True)`, `torch.sort(lengths)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sort"


def _names(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target)) and not isinstance(target, ast.Subscript)


def _ranks_at(node: ast.AST, name: str) -> Iterator[tuple[int, Ask]]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=read), attr=method), args=args) if read == name:
            yield from _of_call(method, args)
        case ast.Call(func=ast.Attribute(attr=function), args=args) if function in PRODUCTS and any(_is(arg, name) for arg in args):
            yield PRODUCTS[function], Ask.EXACT
        case ast.Call(func=ast.Attribute(attr="matmul"), args=[*_, left, right]) | ast.BinOp(left=left, op=ast.MatMult(), right=right):
            if _turns_first_axes(right) and any(_is(side, name) or _is_turned(side, name) for side in (left, right)):
                yield 2, Ask.EXACT
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=value) if _is_shape(value, name):
            starred = any(isinstance(part, ast.Starred) for part in parts)
            yield len(parts) - starred, Ask.LEAST if starred else Ask.EXACT
        case ast.Subscript(value=ast.Name(id=read), slice=ast.Tuple(elts=parts)) if read == name:
            if not any(isinstance(part, ast.Constant) and part.value is Ellipsis for part in parts):
                yield sum(not (isinstance(part, ast.Constant) and part.value is None) for part in parts), Ask.LEAST
        case ast.Subscript(value=value, slice=index) if _is_shape(value, name):
            yield from _least((index,))
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=int(rank))]) if _is_rank(left, name):
            yield rank, Ask.EXACT


def _turns_first_axes(node: ast.expr) -> bool:
    """Whether an expression swaps its first two axes; those of a second factor are its last two."""
    match node:
        case ast.Call(func=ast.Attribute(attr="transpose"), args=[*_, ast.Constant(value=first), ast.Constant(value=second)]):
            return {first, second} == {0, 1}
    return False


def _is_turned(node: ast.expr, name: str) -> bool:
    """Whether an expression swaps two axes of what this name holds."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="transpose"), args=args):
            return any(_is(side, name) for side in (value, *args))
    return False


def _of_call(method: str, args: Sequence[ast.expr]) -> Iterator[tuple[int, Ask]]:
    if method in PRODUCTS:
        yield PRODUCTS[method], Ask.EXACT
    elif method == "permute":
        axes = args[0].elts if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List) else args
        yield len(axes), Ask.LEAST if any(isinstance(axis, ast.Starred) for axis in axes) else Ask.EXACT
    elif method in ("size", "transpose"):
        yield from _least(args)


def _least(indices: Sequence[ast.expr]) -> Iterator[tuple[int, Ask]]:
    """The least rank at which all of these are dimensions."""
    for index in indices:
        try:
            axis = ast.literal_eval(index)
        except (ValueError, TypeError):
            continue
        if isinstance(axis, int):
            yield (axis + 1 if axis >= 0 else -axis), Ask.LEAST


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_shape(node: ast.AST, name: str) -> bool:
    """`x.shape`, `x.size()`."""
    match node:
        case ast.Attribute(value=value, attr="shape") | ast.Call(func=ast.Attribute(value=value, attr="size"), args=[]):
            return _is(value, name)
    return False


def _is_rank(node: ast.AST, name: str) -> bool:
    """`x.dim()`, `x.ndim`, `len(x.shape)`."""
    match node:
        case ast.Attribute(value=value, attr="ndim") | ast.Call(func=ast.Attribute(value=value, attr="dim"), args=[]):
            return _is(value, name)
        case ast.Call(func=ast.Name(id="len"), args=[shape]):
            return _is_shape(shape, name)
    return False
