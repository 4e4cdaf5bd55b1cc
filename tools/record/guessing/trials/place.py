"""Where a trial failed: the statements of the user's code, the parameters they depend on, and the sizes that meet there."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections.abc import Iterator, Sequence
from functools import cache
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from migrate_agent.tools.record.guessing.objects.asked_keys import asked_keys
from migrate_agent.tools.record.guessing.objects.looked_up_words import looked_up_words
from migrate_agent.tools.record.guessing.sizes.asked_sizes import AskedSize, asked_sizes

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
MOST_NUMBERS = 12
LARGEST = 4096


class Place(NamedTuple):
    """Parameters of the constructor and of the call that the failing statement depends on, nearest first; and integers that meet there."""

    init: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    line: int = 0
    statement: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()
    """The two shapes that a failed assertion compares."""
    asked: tuple[AskedSize, ...] = ()
    """Sizes that code asked for before it refused the call."""
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Local name → the keys of a table that had not the one which the name held."""
    words: tuple[tuple[str, str], ...] = ()
    """Name of an object → the text of a word that code looked up in it, and that it has not."""


def place_of(error: BaseException, cls: type, function: Any = None) -> Place:
    """Read the traceback of an error that the constructor or the call of `cls` raised, or the `function` that the call stands for."""
    frames = [row for one in causes(error) for row in _frames(one.__traceback__)]
    error = list(causes(error))[-1]
    code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
    own = [row for row in frames if isinstance(row[0].f_locals.get("self"), cls) and _is_users(row[0])]
    own = [row for row in frames if row[0].f_code is code] if function is not None else own
    init: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    line, statement = 0, ""
    for frame, at in own[:1]:
        names = _mentioned(frame, at)
        names = list(frame.f_code.co_varnames[1 : frame.f_code.co_argcount]) if LIBRARIES.search(frame.f_code.co_filename) else names
        reached = _sources(frame.f_code.co_filename, frame.f_code.co_firstlineno, names, at)
        line = at
        node = _statement(frame.f_code.co_filename, at)
        statement = ast.unparse(node) if node is not None else ""
        if frame.f_code.co_name == "__init__":
            init = tuple(dict.fromkeys([*_handed_down(frame, frames), *reached]))
        else:
            call = reached
            init = reached if function is not None else _constructor_names(cls, [name for name in reached if name.startswith("self.")])
    message = [int(number) for number in re.findall(r"(?<![\w.])\d+(?![\w.]*\w)", str(error))]
    return Place(
        init,
        call,
        tuple(dict.fromkeys([*_sizes_at(frames), *_small(message)]))[:MOST_NUMBERS],
        line,
        statement,
        _asserted_shapes(error, frames),
        asked_sizes(frames),
        asked_keys(error, frames, _statement),
        looked_up_words(error, frames, _statement),
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and where a library made it of another one, of code that it had called, that one: it says what was wrong."""
    yield error
    frames = [frame for frame, _ in _frames(error.__traceback__)]
    if error.__cause__ is not None and frames and LIBRARIES.search(frames[-1].f_code.co_filename):
        yield from causes(error.__cause__)


def none_read(error: BaseException) -> Iterator[tuple[Any, str]]:
    """The objects and their attributes that are None, of those which the statements read that an error came through, the innermost first."""
    for frame, line in reversed(list(_frames(error.__traceback__))):
        owner = frame.f_locals.get("self")
        for name in _mentioned(frame, line) if _is_users(frame) else ():
            if name.startswith("self.") and hasattr(owner, "__dict__") and _look_up(frame, name) is None:
                yield owner, name.removeprefix("self.")


def none_asked(error: BaseException) -> Iterator[tuple[Any, str]]:
    """The objects and their attributes that are None, of those which code asked before it refused on purpose: by the failed assertion, or by the
    conditions around the statement that raised."""
    yield from none_read(error)
    for frame, line in reversed(list(_frames(error.__traceback__))):
        owner = frame.f_locals.get("self")
        for node in _nodes(_tree(frame.f_code.co_filename)) if _is_users(frame) and hasattr(owner, "__dict__") else ():
            if isinstance(node, ast.If) and node.lineno <= line <= (node.end_lineno or node.lineno):
                names = [name.removeprefix("self.") for name in _names(node.test) if name.startswith("self.")]
                yield from ((owner, name) for name in names if _look_up(frame, f"self.{name}") is None)


def _asserted_shapes(error: BaseException, frames: Sequence[tuple[FrameType, int]]) -> tuple[tuple[int, ...], ...]:
    """Both sides of `assert x.shape == (y.shape[0], 4)`, where that failed."""
    frame, line = frames[-1] if frames else (None, 0)
    node = _statement(frame.f_code.co_filename, line) if frame is not None and isinstance(error, AssertionError) else None
    match node:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])) if frame is not None:
            sides = [_shape(side, frame) for side in (left, right)]
            return (sides[0], sides[1]) if sides[0] and sides[1] else ()
    return ()


PLAIN_NODES = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.UnaryOp),
    *(ast.operator, ast.unaryop, ast.expr_context),
)


def _shape(node: ast.expr, frame: FrameType) -> tuple[int, ...]:
    """The sizes that an expression stands for in a frame: `x.shape`, `x.size()`, `(n, x.shape[-1])`; () where it is anything else."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[], keywords=[]):
            node = ast.Attribute(owner, "shape", ast.Load())
    if not all(isinstance(part, PLAIN_NODES) for part in ast.walk(node)):
        return ()
    try:
        value = eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<assertion>", "eval"), frame.f_globals, frame.f_locals)
    except Exception:  # a property of the user's may raise anything
        return ()
    return tuple(value) if isinstance(value, (tuple, list)) and all(type(size) is int for size in value) else ()


def _handed_down(own: FrameType, frames: Sequence[tuple[FrameType, int]]) -> list[str]:
    """Variables of a constructor that the statement which failed further inside reads: what both hold, by its name or by the object."""
    inner, at = next(((frame, at) for frame, at in reversed(frames) if not LIBRARIES.search(frame.f_code.co_filename)), frames[-1])
    if inner is own:
        return []
    mine = own.f_locals
    read = [(name, inner.f_locals[name]) for name in _mentioned(inner, at) if name in inner.f_locals]
    alike = [name for name, value in read if name in mine and mine[name] is value]
    alone = [name for _, value in read for name in mine if mine[name] is value and sum(other is value for other in mine.values()) == 1]
    return [*alike, *alone]


def _is_users(frame: FrameType) -> bool:
    """Whether it is code of the user, or of a layer that the class derives from; not the machinery of `nn.Module` that calls it."""
    return not LIBRARIES.search(frame.f_code.co_filename) or frame.f_code.co_name in ("__init__", "forward")


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


@cache
def _tree(path: str) -> ast.Module:
    if LIBRARIES.search(path):
        return ast.Module([], [])
    try:
        return ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return ast.Module([], [])


@cache
def _nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a tree: it is gone through at each failed trial."""
    return tuple(ast.walk(tree))


@cache
def _statement(path: str, line: int) -> ast.AST | None:
    """The innermost statement at a line; of a compound one its head only."""
    innermost: ast.AST | None = None
    for node in _nodes(_tree(path)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            innermost = node if innermost is None or node.lineno >= getattr(innermost, "lineno", 0) else innermost
    match innermost:
        case ast.If(test=head) | ast.While(test=head) | ast.For(iter=head):
            return head
        case ast.With(items=[item, *_]):
            return item.context_expr
    return innermost


LIBRARIES = re.compile(r"[/\\\\](site-packages|dist-packages|lib[/\\\\]python3[^/\\\\]*)[/\\\\]")


def _mentioned(frame: FrameType, line: int) -> list[str]:
    # Files of libraries are long, and what meets in them is their `input` and the layer itself.
    if LIBRARIES.search(frame.f_code.co_filename):
        return ["self", "input", "input_size", "hidden_size"]
    node = _statement(frame.f_code.co_filename, line)
    return list(_names(node)) if node is not None else []


def _names(node: ast.AST) -> Iterator[str]:
    """Names that are read, and attributes of `self`, as `self.name`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
            yield f"self.{part.attr}"
        elif isinstance(part, ast.Name) and part.id != "self":
            yield part.id


def _sources(path: str, first: int, names: Sequence[str], before: int) -> tuple[str, ...]:
    """The names, and those that they were computed from in the function that begins at line `first`."""
    functions = [node for node in _nodes(_tree(path)) if isinstance(node, FUNCTIONS) and _begins(node) == first]
    reached = list(dict.fromkeys(names))
    for function in functions[:1]:
        for name in reached:  # grows while it is read
            reached += [other for other in _assigned_from(function, name, before) if other not in reached]
    return tuple(reached)


def _begins(node: FUNCTIONS) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _assigned_from(function: ast.AST, name: str, before: int) -> Iterator[str]:
    for node in _nodes(function):
        if getattr(node, "lineno", 0) > before:
            continue
        match node:
            case ast.Assign(targets=targets, value=value) if any(name in _names(target) for target in targets):
                yield from _names(value)
            case ast.AugAssign(target=target, value=value) | ast.AnnAssign(target=target, value=ast.expr() as value) if name in _names(
                target
            ):
                yield from _names(value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value) if name in _names(target):
                yield from _names(value)
            # `layers.append(Block(dim))` is how lists of layers are computed.
            case ast.Call(func=ast.Attribute(value=owner, attr="append" | "extend" | "register_buffer" | "add_module"), args=args):
                if name in _names(owner):
                    for arg in args:
                        yield from _names(arg)


def _constructor_names(cls: type, attributes: Sequence[str]) -> tuple[str, ...]:
    """Names in the constructor that attributes of `self` were computed from."""
    code = getattr(vars(cls).get("__init__", getattr(cls, "__init__", None)), "__code__", None)
    if code is None:
        return ()
    return tuple(name for name in _sources(code.co_filename, code.co_firstlineno, attributes, 10**9) if not name.startswith("self."))


def _sizes_at(frames: Sequence[tuple[FrameType, int]]) -> list[int]:
    """Integers, and sizes of tensors, that the failing statements read: of the deepest frames first."""
    numbers: list[int] = []
    for frame, line in reversed(frames[-6:]):
        for name in _mentioned(frame, line):
            numbers += _small(_integers(_look_up(frame, name)))
    return numbers


def _look_up(frame: FrameType, name: str) -> Any:
    if name.startswith("self."):
        owner = frame.f_locals.get("self")
        parts = vars(owner) if hasattr(owner, "__dict__") else {}
        attribute = name.removeprefix("self.")
        tables = (parts, parts.get("_parameters", {}), parts.get("_buffers", {}), parts.get("_modules", {}))
        return next((table[attribute] for table in tables if attribute in table), None)
    return frame.f_locals.get(name)


LAYER_SIZES = ("in_features", "in_channels", "num_features", "normalized_shape", "input_size", "num_channels", "embed_dim", "hidden_size")


def _integers(value: Any) -> list[int]:
    import torch

    if isinstance(value, bool):
        return []
    if isinstance(value, int):
        return [value]
    if isinstance(value, torch.Tensor):
        return list(value.shape)
    if isinstance(value, tuple | list):
        return [number for item in value[:4] if isinstance(item, int) for number in _integers(item)]
    if isinstance(value, torch.nn.Module):
        return [number for name in LAYER_SIZES if name in vars(value) for number in _integers(vars(value)[name])]
    return []


def _small(numbers: Sequence[int]) -> list[int]:
    return [number for number in numbers if 0 < number <= LARGEST]
