"""Finds loops over parts of a tensor that change the parts in place (`for row in x`, `for a in
x.split(4)`).

In torch a part is a view, so that the tensor changes with it. In JAX the new parts have to be
joined again after the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from migrate_agent.tools.rewrite.analysis.aliases import shared_names
from migrate_agent.tools.scan.nodes import walk

AXIS = {"split": 1, "chunk": 1, "unbind": 0}
"""Method or function that splits a tensor → position of the axis among its arguments, without the tensor."""


@dataclass(frozen=True)
class Part:
    """The tensor of which a loop variable is a part: its name, and the axis that was split or iterated."""

    base: str
    axis: int


def parts_name(part: Part) -> str:
    """The name of the list that collects the new parts."""
    return f"{part.base}_parts"


def loop_part(function: ast.AST, loop: ast.For, name: str, is_tensor: Callable[[ast.expr], bool]) -> Part | None:
    """The tensor of which `name` is a part: a target of `loop` that the body changes in place.

    `None` where it is no part of a local tensor, and where joining the parts after the loop would
    come too late: the loop may end early, or the body reads the tensor or another name of its
    memory.
    """
    source = _source(loop.target, loop.iter, name)
    if source is None and isinstance(loop.target, ast.Tuple):
        source = _source(loop.target, _iterable_assigned_before(function, loop), name)
    result = _split_part(source, is_tensor)
    # After an early exit the remaining parts would be missing from the joined tensor.
    if result is None or loop.orelse or any(_exits_early(statement) for statement in loop.body):
        return None
    nodes = [node for statement in loop.body for node in walk(statement)]
    updated = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in updated]
    # A read of the tensor inside the loop would see the old parts.
    if any(node.id == result.base or (node.id == name and isinstance(node.ctx, ast.Store)) for node in names):
        return None
    return result if _is_private(function, loop, result.base) and not _read_later(function, loop, name) else None


def _source(target: ast.expr, value: ast.expr | None, name: str) -> ast.expr | None:
    """The expression that `name` iterates over, seen through `enumerate` and `zip`; `None` where
    that is not unique.
    """
    match target, value:
        case ast.Name(id=own), ast.expr():
            return value if own == name else None
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[first, *_]):
            return _source(inner, first, name)
        case ast.Tuple(elts=elements), ast.Call(func=ast.Name(id="zip"), args=args) if len(elements) == len(args):
            starred = any(isinstance(node, ast.Starred) for node in (*elements, *args))
            sources = [] if starred else [s for e, a in zip(elements, args, strict=True) if (s := _source(e, a, name)) is not None]
            return sources[0] if len(sources) == 1 else None
    return None


def _iterable_assigned_before(function: ast.AST, loop: ast.For) -> ast.expr | None:
    """The iterable of the loop, where the statement just before assigns it to a name that is used
    for nothing else.

    Nothing stands between the two statements, so that it does not matter when the views were made.
    """
    counted = isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "enumerate"
    through = loop.iter.args[0] if isinstance(loop.iter, ast.Call) and counted and loop.iter.args else loop.iter
    if not isinstance(through, ast.Name):
        return None
    for block in _blocks(function):
        indices = [i for i, statement in enumerate(block) if statement is loop]
        before = block[indices[0] - 1] if indices and indices[0] else None
        match before:
            case ast.Assign(targets=[ast.Name(id=own)], value=value) if own == through.id:
                uses = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == own]
                if len(uses) != 2:
                    return None
                return ast.Call(ast.Name("enumerate"), [value], []) if counted else value
    return None


def _blocks(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in walk(function):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, field, None), list):
                yield block


def _split_part(source: ast.expr | None, is_tensor: Callable[[ast.expr], bool]) -> Part | None:
    match source:
        case ast.Name(id=base) if is_tensor(source):
            return Part(base, 0)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=attr), args=[ast.Name(id=base), *rest]) if module == "torch":
            return _part_along_axis(base, attr, rest, source.keywords)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=base) as whole, attr=attr), args=args) if is_tensor(whole):
            return _part_along_axis(base, attr, args, source.keywords)
    return None


def _part_along_axis(base: str, method: str, args: list[ast.expr], keywords: list[ast.keyword]) -> Part | None:
    if method not in AXIS:
        return None
    values = {word.arg: word.value for word in keywords}
    # The axis has to be a literal: the parts are joined along the same one.
    axis = values.get("dim", args[AXIS[method]] if len(args) > AXIS[method] else ast.Constant(0))
    try:
        number = ast.literal_eval(axis)
    except ValueError:
        return None
    return Part(base, number) if isinstance(number, int) else None


def _exits_early(node: ast.AST, inner: bool = False) -> bool:
    """Whether a statement of a loop body may end the iteration or the loop early.

    `inner` says that the statement stands in a nested loop, whose `break` and `continue` do no
    harm.
    """
    match node:
        case ast.Return() | ast.Yield() | ast.YieldFrom():
            return True
        case ast.Break() | ast.Continue():
            return not inner
        case ast.FunctionDef() | ast.Lambda() | ast.ClassDef():
            return False
    nested = inner or isinstance(node, (ast.For, ast.While))
    return any(_exits_early(child, nested) for child in ast.iter_child_nodes(node))


def _is_private(function: ast.AST, loop: ast.For, base: str) -> bool:
    """Whether the tensor is assigned in the function before the loop, and no other name shares its memory."""
    arguments = {
        a.arg for node in walk(function) if isinstance(node, ast.arguments) for a in (*node.posonlyargs, *node.args, *node.kwonlyargs)
    }
    # A parameter belongs to the caller, who would keep the old tensor.
    names = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == base]
    assigned = any(isinstance(node.ctx, ast.Store) and node.lineno < loop.lineno for node in names)
    targets = {node.id for node in walk(loop.target) if isinstance(node, ast.Name)}
    return assigned and base not in arguments | targets and not shared_names(function, base, loop.lineno) - targets


def _read_later(function: ast.AST, loop: ast.For, name: str) -> bool:
    """Whether the loop variable is read after the loop, when it still is the last part."""
    loops = [
        node
        for node in walk(function)
        if isinstance(node, ast.For) and any(isinstance(n, ast.Name) and n.id == name for n in walk(node.target))
    ]
    spans = [(node.lineno, node.end_lineno or node.lineno) for node in loops]
    reads = [node.lineno for node in walk(function) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)]
    return any(not any(start <= line <= end for start, end in spans) for line in reads)
