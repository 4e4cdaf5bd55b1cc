"""How many dimensions an argument has, by what the code does with it: `a.t()` has two, `b, c, h, w = x.shape` says four."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.reads import arguments
from migrate_agent.tools.record.guessing.values import Tensor

DEPTH = 2
"""Through how many methods of the class an argument is followed."""
PRODUCTS = MappingProxyType({"mm": 2, "spmm": 2, "t": 2, "bmm": 3})
"""Methods, and functions of torch, whose operands have a rank of their own."""
LAYERS = MappingProxyType(
    {"Conv1d": 3, "ConvTranspose1d": 3, "Conv2d": 4, "ConvTranspose2d": 4, "BatchNorm2d": 4, "Conv3d": 5, "BatchNorm3d": 5}
)
ADDED = 16
"""The size of a dimension that an input lacked."""


class Ranks(NamedTuple):
    """The rank that the code asks for, 0 where it asks for none or for several; and the least that it needs."""

    exact: int = 0
    least: int = 0

    def fit(self, shape: Sequence[int]) -> bool:
        """Whether the code may take a tensor of this shape."""
        return (not self.exact or len(shape) == self.exact) and len(shape) >= self.least


def ranks_of(called: Any, instance: Any, name: str) -> Ranks:
    """What the code of a function, and of the methods of `instance` that it hands the argument to, says of the rank of one argument."""
    uses = set(_uses(called, instance, name, DEPTH))
    exact = {rank for rank, is_exact in uses if is_exact}
    return Ranks(exact.pop() if len(exact) == 1 else 0, max((rank for rank, is_exact in uses if not is_exact), default=0))


def ranked(ranks: Ranks, main: Tensor) -> Iterator[Tensor]:
    """Tensors of the rank that is asked for, with the sizes of the main input; those between its nodes first."""
    shape, rank = main.shape, ranks.exact or ranks.least
    if rank == 2 and len(shape) > 2:
        shapes: tuple[tuple[int, ...], ...] = ((shape[-2], shape[-2]), (shape[0], shape[-1]), (shape[-2], shape[-1]))
    elif rank <= len(shape):
        shapes = (shape[:rank], shape[len(shape) - rank :])
    else:
        lacking = (ADDED,) * (rank - len(shape))
        shapes = ((*shape, *lacking), (*shape[:1], *lacking, *shape[1:]))
    yield from (Tensor(one, main.kind, main.high) for one in dict.fromkeys(shapes))


def _uses(called: Any, instance: Any, name: str, depth: int) -> Iterator[tuple[int, bool]]:
    """Ranks, and whether each is exact or the least, by each use before the name is assigned anew."""
    nodes = nodes_of(called) if called is not None else ()
    ends = [node.lineno for node in nodes if isinstance(node, ast.Assign) and any(_names(target, name) for target in node.targets)]
    end = min(ends, default=10**9)
    for node in nodes:
        if getattr(node, "lineno", 0) > end:
            continue
        yield from _ranks_at(node, name)
        if isinstance(node, ast.Call):
            yield from _of_layer(node, instance, name)
            yield from _of_method(node, instance, name, depth)


def _names(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target)) and not isinstance(target, ast.Subscript)


def _ranks_at(node: ast.AST, name: str) -> Iterator[tuple[int, bool]]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=read), attr=method), args=args) if read == name:
            yield from _of_call(method, args)
        case ast.Call(func=ast.Attribute(attr=function), args=args) if function in PRODUCTS and any(_is(arg, name) for arg in args):
            yield PRODUCTS[function], True
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=value) if _is_shape(value, name):
            starred = any(isinstance(part, ast.Starred) for part in parts)
            yield len(parts) - starred, not starred
        case ast.Subscript(value=ast.Name(id=read), slice=ast.Tuple(elts=parts)) if read == name:
            if not any(isinstance(part, ast.Constant) and part.value is Ellipsis for part in parts):
                yield sum(not (isinstance(part, ast.Constant) and part.value is None) for part in parts), False
        case ast.Subscript(value=value, slice=index) if _is_shape(value, name):
            yield from _least((index,))
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=int(rank))]) if _is_rank(left, name):
            yield rank, True


def _of_call(method: str, args: Sequence[ast.expr]) -> Iterator[tuple[int, bool]]:
    if method in PRODUCTS:
        yield PRODUCTS[method], True
    elif method == "permute":
        axes = args[0].elts if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List) else args
        yield len(axes), not any(isinstance(axis, ast.Starred) for axis in axes)
    elif method in ("size", "transpose"):
        yield from _least(args)


def _least(indices: Sequence[ast.expr]) -> Iterator[tuple[int, bool]]:
    """The least rank at which all of these are dimensions."""
    for index in indices:
        try:
            axis = ast.literal_eval(index)
        except (ValueError, TypeError):
            continue
        if isinstance(axis, int):
            yield (axis + 1 if axis >= 0 else -axis), False


def _of_layer(call: ast.Call, instance: Any, name: str) -> Iterator[tuple[int, bool]]:
    """The rank that a layer of the instance takes: `self.conv(x)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=layer), args=[first, *_]) if _is(first, name):
            rank = LAYERS.get(type(getattr(instance, layer, None)).__name__)
            yield from ((rank, True),) if rank else ()


def _of_method(call: ast.Call, instance: Any, name: str, depth: int) -> Iterator[tuple[int, bool]]:
    """What a method of the instance does with the argument: `self.attend(x)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=called)) if depth:
            method = inspect.getattr_static(type(instance), called, None)
            if inspect.isfunction(method) and not method.__module__.startswith("torch."):
                for other, value in arguments(method, call):
                    if _is(value, name):
                        yield from _uses(method, instance, other, depth - 1)


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
