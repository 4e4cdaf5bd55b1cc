"""Which names share memory in torch: a write through one is seen through the other, which JAX's values do not do."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from migrate_agent.tools.scan.nodes import walk

VIEW_METHODS = frozenset(
    "view reshape view_as reshape_as transpose permute t swapaxes swapdims movedim squeeze unsqueeze expand expand_as narrow select diagonal "
    "flatten unflatten unfold as_strided contiguous detach chunk split unbind tensor_split data T mT real imag to type_as float double".split()
)
"""Methods and attributes whose result may share memory with what they are called on."""
SURE_VIEWS = frozenset("view view_as transpose t swapaxes squeeze unsqueeze T mT data detach".split())
"""Views that are never copies, and that can be undone."""
VIEW_FUNCTIONS = frozenset(
    "transpose permute squeeze unsqueeze reshape flatten chunk split unbind narrow select swapaxes movedim diagonal as_strided rearrange".split()
)


STORING_METHODS = frozenset("append appendleft extend insert add put setdefault update register_buffer save_for_backward".split())
"""Methods that keep their arguments as they are."""
Copies = Callable[[ast.expr], bool]
"""Whether what a subscript is assigned to copies the value, as a tensor does and a list does not."""


@dataclass(frozen=True)
class Alias:
    """`one` was assigned something that may share the memory of `other`, on `line`; an attribute (`self.x`), or what an object keeps, counts as read.

    `sure` where it is certainly a view; `exact` where it still is that very one, so that each can be brought up to date from the other.
    """

    one: str
    other: str
    line: int
    sure: bool = False
    exact: bool = False


class _MarkCopies(ast.NodeTransformer):
    def __init__(self, picks: Callable[[ast.expr], bool]) -> None:
        self.picks = picks

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not isinstance(node.ctx, ast.Load) or not any(self.picks(part) for part in parts):
            return node
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name("copy_of", ast.Load()), node), [node], []), node)


def mark_copies(function: ast.AST, picks: Callable[[ast.expr], bool]) -> ast.AST:
    """The function with `copy_of(x[i])` for `x[i]` where an index picks elements one by one, as a tensor of several does: that shares no memory."""
    marked: ast.AST = _MarkCopies(picks).visit(copy.deepcopy(function))
    for node in ast.walk(marked):
        node.__dict__.pop("_walked", None)
    return marked


def root(node: ast.expr) -> str:
    """The name whose memory an expression may share (`x`, or an attribute as `self.x`), or ""."""
    while True:
        match node:
            case ast.Name():
                return node.id
            case ast.Subscript():
                node = node.value
            case ast.Attribute() if node.attr in VIEW_METHODS:
                node = node.value
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr in VIEW_METHODS and not _is_module(value):
                node = value
            case ast.Call(func=ast.Attribute(attr=attr) | ast.Name(id=attr), args=[first, *_]) if attr in VIEW_FUNCTIONS:
                node = first
            case ast.Attribute():
                return _dotted(node)
            case _:
                return ""


def _dotted(node: ast.expr) -> str:
    """`self.layer.weight`, or "" for what is no such chain."""
    if isinstance(node, ast.Name):
        return node.id
    before = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else ""


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "einops")


def is_reversible_view(node: ast.expr) -> bool:
    """Whether an expression is certainly a view of a name, along steps that can be undone."""
    match node:
        case ast.Name():
            return True
        case ast.Subscript(value=value, slice=index):
            return is_reversible_view(value) and _is_basic_index(index)
        case ast.Attribute(attr=attr, value=value):
            return is_reversible_view(value) if attr in SURE_VIEWS else bool(_dotted(node))
        case ast.Call(func=ast.Attribute(attr=attr, value=value)):
            return attr in SURE_VIEWS and not _is_module(value) and is_reversible_view(value)
    return False


def _is_basic_index(index: ast.expr) -> bool:
    """Whether an index is made of slices and whole numbers written in the source, which select a view."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, (ast.Slice, ast.UnaryOp)) or (isinstance(p, ast.Constant) and not isinstance(p.value, bool)) for p in parts)


def stale_aliases(
    function: ast.AST, name: str, line: int, handed_back: Iterable[str] = (), copies: Copies = lambda container: True
) -> list[Alias]:
    """All aliases along which a write to `name` at `line` must be passed on, to reach each name that is read afterwards or handed back to the
    caller at the end; nearest first."""
    reached = _reachable_aliases(function, name, line, copies)
    targets: set[str] = set()
    for other in reached:
        if other in handed_back or "." in other or read_after(function, other, line):
            while other != name and other not in targets:
                targets.add(other)
                other = reached[other][0]
    return [alias for other, (_, alias) in reached.items() if other in targets]


def certain_aliases(function: ast.AST, name: str, line: int) -> dict[str, bool]:
    """Names whose memory a write to `name` at `line` certainly changes, `name` itself included, and whether each can be brought up to date."""
    reached = _reachable_aliases(function, name, line)
    up_to_date = {name: not _becomes_other_view(function, name, 0, line)}
    for other, (by, alias) in reached.items():
        if by in up_to_date and alias.sure:
            up_to_date[other] = up_to_date[by] and alias.exact
    return up_to_date


def _reachable_aliases(function: ast.AST, name: str, line: int, copies: Copies = lambda container: True) -> dict[str, tuple[str, Alias]]:
    """Name that shares the memory of `name` at `line` → the name by which it was reached, and their alias; nearest first."""
    rebound = list(_rebindings(function))
    container_aliases = list(_container_aliases(function, copies))
    all_aliases = [*_aliases(function), *container_aliases]
    aliases = [alias for alias in all_aliases if alias.line <= line]
    later = [alias for alias in all_aliases if alias.one == name] + [alias for alias in container_aliases if alias.other == name]
    aliases += [replace(alias, line=line, exact=False) for alias in later if _survives_iteration(function, alias, name, line)]
    reached: dict[str, tuple[str, Alias]] = {}
    todo = [name]
    while todo:
        current = todo.pop(0)
        for alias in aliases:
            other = alias.other if alias.one == current else alias.one if alias.other == current else ""
            if not other or other == name or other in reached:
                continue
            if any(n in (current, other) and alias.line < at < line for n, at in rebound):
                continue
            anew = any(_becomes_other_view(function, n, alias.line, line) for n in (current, other))
            reached[other] = (current, replace(alias, exact=False) if anew else alias)
            todo.append(other)
    return reached


def _survives_iteration(function: ast.AST, alias: Alias, name: str, line: int) -> bool:
    """Whether what one turn of a loop makes of `name` after `line` is still there at `line` in the next turn."""
    for loop in walk(function):
        if isinstance(loop, (ast.For, ast.While)) and loop.lineno < line < alias.line <= (loop.end_lineno or 0):
            if not any(bound == name and loop.lineno < at < line for bound, at in _rebindings(loop)):
                return True
    return False


def _becomes_other_view(function: ast.AST, name: str, start: int, end: int) -> bool:
    """Whether a name becomes another view of the same memory between two lines, in later turns of a loop included."""
    loops = [n for n in walk(function) if isinstance(n, (ast.For, ast.While)) and start < n.lineno < end <= (n.end_lineno or n.lineno)]
    lines = [target.lineno for target in reassigned_views(function, sure=False) if target.id == name]
    return any(start < line < end or any(loop.lineno < line <= (loop.end_lineno or 0) for loop in loops) for line in lines)


def reassigned_views(function: ast.AST, sure: bool = True) -> Iterator[ast.Name]:
    """The targets of `x = x.view(…)`, after which a name is another view of the memory that it was; `sure` where it certainly is."""
    for node in walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(target := node.targets[0], ast.Name):
            if root(node.value) == target.id and (is_reversible_view(node.value) or not sure):
                yield target


def read_after(function: ast.AST, name: str, line: int) -> bool:
    """Whether the value that `name` has at `line` is read later, in the next turn of a loop included."""
    loops = [n for n in walk(function) if isinstance(n, (ast.For, ast.While)) and n.lineno < line <= (n.end_lineno or n.lineno)]
    last = final_statement(function, line)
    if last is not None:
        function, loops = last, []
    for node in walk(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            if node.lineno > line and not _rebound_between(function, name, line, node.lineno):
                return True
            if any(n.lineno <= node.lineno <= line and not _rebound_between(function, name, n.lineno, node.lineno) for n in loops):
                return True
    return False


def final_statement(function: ast.AST, line: int) -> ast.AST | None:
    """The statement around `line`, where it is the last that the function runs: a `return` or `raise` outside of any `try`."""
    around = [node for node in walk(function) if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)]
    if any(isinstance(node, (ast.Try, ast.FunctionDef)) and node is not function for node in around):
        return None
    return next((node for node in around if isinstance(node, (ast.Return, ast.Raise))), None)


def _rebound_between(function: ast.AST, name: str, start: int, end: int) -> bool:
    return any(n == name and start < at < end for n, at in _rebindings(function))


def _aliases(function: ast.AST) -> Iterator[Alias]:
    for node in walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                alone = len(node.targets) == 1 and isinstance(target, ast.Name) and is_reversible_view(node.value)
                for alias in _paired_aliases(target, node.value, node.lineno):
                    yield replace(alias, sure=alone, exact=alone)
        elif isinstance(node, (ast.For,)) and (base := root(node.iter)):
            for name in walk(node.target):
                if isinstance(name, ast.Name):
                    yield Alias(name.id, base, node.lineno)


def _container_aliases(function: ast.AST, copies: Copies) -> Iterator[Alias]:
    """What is kept as it is by a list or another container, an attribute, or an object."""
    for node in walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                elements = _elements(value)
                for target in targets:
                    if isinstance(target, ast.Subscript) and not copies(target.value):
                        yield from _aliases_of_values(target.value, [value, *elements], node.lineno)
                    elif isinstance(target, ast.Attribute):
                        yield from _aliases_of_values(target, [value, *elements], node.lineno)
                    elif isinstance(target, ast.Name):
                        yield from _aliases_of_values(target, elements, node.lineno)
            case ast.Call(func=ast.Attribute(value=container, attr=attr), args=args, keywords=keywords) if attr in STORING_METHODS:
                values = [*args, *(keyword.value for keyword in keywords)]
                elements = [element for value in values for element in _elements(value)]
                objects = attr in ("register_buffer", "save_for_backward")
                if objects or not copies(container):
                    yield from _aliases_of_values(
                        ast.Attribute(container, attr) if objects else container, [*values, *elements], node.lineno
                    )


def _aliases_of_values(container: ast.expr, values: Iterable[ast.expr], line: int) -> Iterator[Alias]:
    while isinstance(container, ast.Subscript):
        container = container.value
    if isinstance(container, (ast.Name, ast.Attribute)):
        yield from (Alias(ast.unparse(container), base, line) for value in values if (base := root(value)))


def _elements(value: ast.expr) -> list[ast.expr]:
    """What stands in a list, tuple or dictionary that is written out."""
    match value:
        case ast.List(elts=inner) | ast.Tuple(elts=inner) | ast.Dict(values=inner):
            return [item for element in inner for item in (element, *_elements(element))]
    return []


def _paired_aliases(target: ast.expr, value: ast.expr, line: int) -> Iterator[Alias]:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _paired_aliases(one, other, line)
        return
    values = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    for candidate in values:
        if base := root(candidate):
            for name in walk(target):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    yield Alias(name.id, base, line)


def _rebindings(function: ast.AST) -> Iterator[tuple[str, int]]:
    """Plain assignments to a name of something that is not a view of that name."""
    for node in walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in walk(target):
                    if (
                        isinstance(name, (ast.Name, ast.Attribute))
                        and isinstance(name.ctx, ast.Store)
                        and root(node.value) != _dotted(name)
                    ):
                        yield _dotted(name), node.lineno


def shared_names(function: ast.AST, name: str, line: int) -> set[str]:
    """The other names that share the memory of `name` at `line`."""
    return set(_reachable_aliases(function, name, line))


def bound_names(function: ast.AST) -> set[str]:
    """The names that a function binds: parameters, and what is assigned in it."""
    inner = [node for statement in ast.iter_child_nodes(function) for node in [statement, *walk(statement)]]
    stored = {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in inner if isinstance(node, ast.arg)}


def binding_loop(function: ast.AST, name: str, line: int) -> ast.For | None:
    """The loop around `line` that binds `name`, where it has no other value since: a write to it may reach what the loop goes through."""
    for loop in walk(function):
        if not isinstance(loop, ast.For) or not loop.lineno < line <= (loop.end_lineno or line):
            continue
        if any(isinstance(n, ast.Name) and n.id == name for n in walk(loop.target)):
            return None if any(bound == name and loop.lineno < at < line for bound, at in _rebindings(loop)) else loop
    return None
