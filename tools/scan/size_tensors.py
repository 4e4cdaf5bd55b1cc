"""Sizes that travel in tensors: a scripted function takes `n_channels[0]` of `torch.IntTensor([n])` for a slice. Reads syntax only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate_agent.tools.scan.exports import dotted_text

Function = ast.FunctionDef | ast.AsyncFunctionDef
SIZED = frozenset({"view", "reshape", "expand", "narrow", "split", "repeat"})
"""Methods whose arguments are sizes."""


def size_parameters(function: Function) -> frozenset[str]:
    """The parameters of a scripted function that are tensors, and of which it reads numbers alone, for slices and sizes.

    TorchScript takes a parameter without an annotation for a tensor. JAX has to know a size before it traces, so that such a function is judged
    with what calls it.
    """
    if not any((dotted_text(decorator) or "").rpartition(".")[2] == "script" for decorator in function.decorator_list):
        return frozenset()
    plain = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    tensors = {item.arg for item in plain if item.annotation is None or (dotted_text(item.annotation) or "").endswith("Tensor")}
    return frozenset(name for name in tensors if _sizes_only(function, name))


def _sizes_only(function: Function, name: str) -> bool:
    reads = [node for node in ast.walk(function) if _number_of(node) == name]
    inner = {id(part) for read in reads for part in ast.walk(read)}
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
    if not reads or any(id(node) not in inner for node in names):
        return False
    bound = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _number_of(node.value) == name
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    sizes = {id(part) for size in _sizes(function) for part in ast.walk(size)}
    return any(
        id(node) in sizes for node in ast.walk(function) if _number_of(node) == name or (isinstance(node, ast.Name) and node.id in bound)
    )


def _number_of(node: ast.AST) -> str:
    """The name of which an expression reads one number (`n[0]`, `n.item()`, `int(n[0])`), else ""."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int())):
            return name
        case (
            ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="item"), args=[])
            | ast.Call(func=ast.Name(id="int"), args=[ast.Name(id=name)])
        ):
            return name
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]) | ast.Call(func=ast.Name(id="int"), args=[inner]):
            return _number_of(inner)
    return ""


def _sizes(function: Function) -> Iterator[ast.expr]:
    """The bounds of slices, and the arguments of methods that take sizes."""
    for node in ast.walk(function):
        match node:
            case ast.Slice():
                yield from (bound for bound in (node.lower, node.upper) if bound is not None)
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in SIZED:
                yield from node.args
