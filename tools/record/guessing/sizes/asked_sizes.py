"""Sizes that code asks of its tensors before it refuses them on purpose: `assert x.size(0) == 1`, `if x.shape[1] != self.channels: raise …`."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common.reach import blocks
from migrate_agent.tools.record.guessing.trials.origins import origins_of

LARGEST = 2**14
MOST_AXES = 6
PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)


class AskedSize(NamedTuple):
    """A tensor that code refused: the arguments it came from, its shape, and the size that an axis should have; where that is None, how many axes."""

    origins: tuple[str, ...]
    shape: tuple[int, ...]
    axis: int | None
    size: int


def asked_sizes(frames: Sequence[tuple[FrameType, int]]) -> tuple[AskedSize, ...]:
    """The sizes that the conditions before the statement which raised wanted otherwise."""
    if not frames:
        return ()
    frame, line = frames[-1]
    tree, sizes = _tree(frame.f_code.co_filename), list[AskedSize]()
    bound = _bound(tree, frame.f_code.co_firstlineno, line)
    for test, holds in _tests(tree, line):
        for comparison in _comparisons(test, holds):
            sizes += _asked(comparison, frame, bound)
    return tuple(dict.fromkeys(sizes))


def _tests(body: Sequence[ast.stmt], line: int, around: tuple[tuple[ast.expr, bool], ...] = ()) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions of the `assert` or around the `raise` on this line, each with what it must be for the statement not to raise."""
    for statement in body:
        if not statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            continue
        match statement:
            case ast.Assert(test=test):
                yield test, True
            case ast.Raise():
                yield from around
            case ast.If(test=test, body=inside, orelse=otherwise):
                yield from _tests(inside, line, ((test, False),))
                yield from _tests(otherwise, line, ((test, True),))
            case _:
                for inner in blocks(statement):
                    yield from _tests(inner, line)


@cache
def _tree(path: str) -> list[ast.stmt]:
    try:
        return ast.parse("".join(linecache.getlines(path))).body
    except SyntaxError:
        return []


def _comparisons(test: ast.expr, holds: bool) -> Iterator[ast.Compare]:
    """The equations that must be true for a condition to be as `holds`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield from _comparisons(inner, not holds)
        case ast.BoolOp(op=ast.And(), values=parts) if holds:
            for part in parts:
                yield from _comparisons(part, holds)
        case ast.BoolOp(op=ast.Or(), values=parts) if not holds:
            for part in parts:
                yield from _comparisons(part, holds)
        case ast.Compare(ops=[ast.Eq()]) if holds:
            yield test
        case ast.Compare(ops=[ast.NotEq()]) if not holds:
            yield test


def _bound(body: Sequence[ast.stmt], first: int, line: int) -> dict[str, ast.expr]:
    """Local name → what the lines from `first` to `line` bind it to last, `x.shape[1]` of `b, c = x.shape` too."""
    bound: dict[str, ast.expr] = {}
    nodes = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Assign) and first <= node.lineno < line]
    for node in sorted(nodes, key=lambda node: node.lineno):
        match node.targets:
            case [ast.Name(id=name)]:
                bound[name] = node.value
            case [ast.Tuple(elts=targets)] if not any(isinstance(target, ast.Starred) for target in targets):
                names = [target.id if isinstance(target, ast.Name) else "" for target in targets]
                bound |= {name: ast.Subscript(node.value, ast.Constant(at), ast.Load()) for at, name in enumerate(names) if name}
    return bound


def _asked(comparison: ast.Compare, frame: FrameType, bound: Mapping[str, ast.expr]) -> Iterator[AskedSize]:
    """What an equation asks of the tensors on either side, where it does not hold."""
    sides = comparison.left, comparison.comparators[0]
    for side, other in (sides, sides[::-1]):
        read = _read(bound.get(side.id, side) if isinstance(side, ast.Name) else side, frame)
        size = _number(other, frame)
        if read is None or size is None or not 0 < size <= (LARGEST if read.axis is not None else MOST_AXES):
            continue
        if read.origins and read.size != size:
            yield read._replace(size=size)


def _read(side: ast.expr, frame: FrameType) -> AskedSize | None:
    """What `x.size(1)`, `x.shape[1]`, `len(x)`, `x.dim()`, `x.ndim` or `len(x.shape)` reads, with the size that it has."""
    match side:
        case (
            ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[axis], keywords=[])
            | ast.Subscript(
                value=ast.Attribute(value=owner, attr="shape") | ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[]), slice=axis
            )
        ):
            return _of_axis(_value(owner, frame), _number(axis, frame))
        case (
            ast.Call(func=ast.Attribute(value=owner, attr="dim" | "ndimension"), args=[])
            | ast.Attribute(value=owner, attr="ndim")
            | ast.Call(
                func=ast.Name("len"),
                args=[ast.Attribute(value=owner, attr="shape") | ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[])],
            )
        ):
            tensor = _value(owner, frame)
            return AskedSize(origins_of(tensor), tuple(tensor.shape), None, tensor.ndim) if _is_tensor(tensor) else None
        case ast.Call(func=ast.Name("len"), args=[owner]):
            return _of_axis(_value(owner, frame), 0)
    return None


def _of_axis(tensor: Any, axis: int | None) -> AskedSize | None:
    if not _is_tensor(tensor) or axis is None or not -tensor.ndim <= axis < tensor.ndim:
        return None
    return AskedSize(origins_of(tensor), tuple(tensor.shape), axis % tensor.ndim, tensor.shape[axis])


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _number(node: ast.expr, frame: FrameType) -> int | None:
    read = _read(node, frame)
    value = read.size if read is not None else _value(node, frame)
    return value if type(value) is int else None


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What an expression without calls stands for in a frame; None for others, and where it raises."""
    if not all(isinstance(part, PLAIN) for part in ast.walk(node)):
        return None
    try:
        return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<condition>", "eval"), frame.f_globals, frame.f_locals)
    except Exception:  # a property of the user's may raise anything
        return None
