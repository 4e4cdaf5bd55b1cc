"""Loops over the parts of a tensor (`for row in x`, `for a, b in zip(x.split(4), y.unbind(1))`) that change these parts in place.

In torch a part is a view, so that the tensor changes with it; in JAX the new parts have to be put together again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from migrate_agent.tools.rewrite.analysis.aliases import shared_names
from migrate_agent.tools.scan.nodes import walk

AXIS = {"split": 1, "chunk": 1, "unbind": 0}
"""Method or function that gives the parts of a tensor → the place of the axis among its arguments."""


@dataclass(frozen=True)
class Part:
    """What a loop's variable is a part of: the name of a tensor, and the axis that was cut or gone through."""

    base: str
    axis: int


def parts_name(part: Part) -> str:
    """What the list of new parts is called."""
    return f"{part.base}_parts"


def loop_part(function: ast.AST, loop: ast.For, name: str, is_tensor: Callable[[ast.expr], bool]) -> Part | None:
    """What `name`, a target of `loop` that its body changes in place, is a part of.

    `None` where it is no part of a local tensor, or where not every change would reach that tensor by putting the parts together after the loop:
    the loop is left in between, or the tensor, or another name of its memory, is read before.
    """
    source = _source(loop.target, loop.iter, name)
    if source is None and isinstance(loop.target, ast.Tuple):
        source = _source(loop.target, _iterable_assigned_before(function, loop), name)
    result = _split_part(source, is_tensor)
    if result is None or loop.orelse or any(_exits_early(statement) for statement in loop.body):
        return None
    nodes = [node for statement in loop.body for node in walk(statement)]
    updated = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in updated]
    if any(node.id == result.base or (node.id == name and isinstance(node.ctx, ast.Store)) for node in names):
        return None
    return result if _is_private(function, loop, result.base) and not _read_later(function, loop, name) else None


def _source(target: ast.expr, value: ast.expr | None, name: str) -> ast.expr | None:
    """The expression whose elements the name takes, through `enumerate` and `zip`."""
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
    """What the loop goes through, where that was put together in a name of its own just before: the iterable, with that name's value in place.

    No tensor may be named in between, so that it does not matter when the views were made.
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
    axis = values.get("dim", args[AXIS[method]] if len(args) > AXIS[method] else ast.Constant(0))
    try:
        number = ast.literal_eval(axis)
    except ValueError:
        return None
    return Part(base, number) if isinstance(number, int) else None


def _exits_early(node: ast.AST, inner: bool = False) -> bool:
    """Whether a statement of a loop's body may go to the next turn early, or leave the loop; `inner` below a loop of its own."""
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
    """Whether the tensor is the function's own: assigned there, named once by the loop, and sharing its memory with nothing else."""
    arguments = {
        a.arg for node in walk(function) if isinstance(node, ast.arguments) for a in (*node.posonlyargs, *node.args, *node.kwonlyargs)
    }
    names = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == base]
    assigned = any(isinstance(node.ctx, ast.Store) and node.lineno < loop.lineno for node in names)
    targets = {node.id for node in walk(loop.target) if isinstance(node, ast.Name)}
    return assigned and base not in arguments | targets and not shared_names(function, base, loop.lineno) - targets


def _read_later(function: ast.AST, loop: ast.For, name: str) -> bool:
    """Whether the last part is read after the loop, by the name that the loop gave it."""
    loops = [
        node
        for node in walk(function)
        if isinstance(node, ast.For) and any(isinstance(n, ast.Name) and n.id == name for n in walk(node.target))
    ]
    spans = [(node.lineno, node.end_lineno or node.lineno) for node in loops]
    reads = [node.lineno for node in walk(function) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)]
    return any(not any(start <= line <= end for start, end in spans) for line in reads)
