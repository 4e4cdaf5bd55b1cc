"""Finds the local names that share memory in torch.

A write through one of them is seen through the others. JAX arrays are values, so the rewrite must
pass such a write on.
"""

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
"""Methods and attributes whose result may share memory with their receiver."""
SURE_VIEWS = frozenset("view view_as transpose t swapaxes squeeze unsqueeze T mT data detach".split())
"""Views that never copy and that have an inverse, so that a write can be passed back to the base."""
VIEW_FUNCTIONS = frozenset(
    "transpose permute squeeze unsqueeze reshape flatten chunk split unbind narrow select swapaxes movedim diagonal as_strided rearrange".split()
)


STORING_METHODS = frozenset("append appendleft extend insert add put setdefault update register_buffer save_for_backward".split())
"""Methods that store their arguments without a copy."""
Copies = Callable[[ast.expr], bool]
"""Whether `container[i] = value` copies the value: a tensor does, a list does not."""


@dataclass(frozen=True)
class Alias:
    """Two names that may share memory: on `line`, `one` was assigned a view of `other`, or an
    object that holds it.

    A name with a dot (`self.x`) is an attribute and counts as read after every line. `sure` says
    that it certainly is a view. `exact` says that neither name became another view since, so that
    each can be computed from the other.
    """

    one: str
    other: str
    line: int
    sure: bool = False
    exact: bool = False


CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "to": "",
    "type": "",
    "type_as": "",
}
"""Methods that convert a tensor, and give the tensor itself where it has the dtype already; nothing where the arguments say which."""
Dtypes = Callable[[ast.expr], tuple[str, ...]]
"""What dtypes an expression was seen to have."""


class _MarkCopies(ast.NodeTransformer):
    def __init__(self, picks: Callable[[ast.expr], bool], dtypes: Dtypes) -> None:
        self.picks, self.dtypes = picks, dtypes

    def visit_Call(self, node: ast.Call) -> ast.expr:
        converts = self._converts(node)
        self.generic_visit(node)
        return _copy_of(node) if converts else node

    def _converts(self, node: ast.Call) -> bool:
        """Whether a call certainly gives a tensor of another dtype than it takes."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in CASTS:
            return False
        before, after = self._dtypes_of(node.func.value), self._dtypes_of(node)
        return bool(before) and bool(after) and not set(before) & set(after)

    def _dtypes_of(self, node: ast.expr) -> tuple[str, ...]:
        called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args else ""
        return (CASTS[called],) if CASTS.get(called) else self.dtypes(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not isinstance(node.ctx, ast.Load) or not any(self.picks(part) for part in parts):
            return node
        return _copy_of(node)


def _copy_of(node: ast.expr) -> ast.Call:
    return ast.copy_location(ast.Call(ast.copy_location(ast.Name("copy_of", ast.Load()), node), [node], []), node)


def mark_copies(function: ast.AST, picks: Callable[[ast.expr], bool], dtypes: Dtypes = lambda node: ()) -> ast.AST:
    """A copy of the function in which `x[i]` reads `copy_of(x[i])` wherever `picks` says that the
    index copies, and `x.float()` reads `copy_of(x.float())` where `dtypes` say that it converts.

    An index that is a tensor gathers elements one by one, so that the result shares no memory with
    `x`.
    """
    marked: ast.AST = _MarkCopies(picks, dtypes).visit(copy.deepcopy(function))
    for node in ast.walk(marked):
        # `walk` caches its nodes on the tree, and the copy has inherited the cache of the original.
        node.__dict__.pop("_walked", None)
    return marked


def root(node: ast.expr) -> str:
    """The name (`x`, `self.x`) whose memory an expression may share; "" where there is none."""
    while True:
        match node:
            case ast.Name():
                return node.id
            case ast.Subscript():
                node = node.value
            case ast.Attribute() if node.attr in VIEW_METHODS:
                node = node.value
            # `torch.transpose(x, 0, 1)` looks like a method call on `torch`; its first argument is
            # the base.
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr in VIEW_METHODS and not _is_module(value):
                node = value
            case ast.Call(func=ast.Attribute(attr=attr) | ast.Name(id=attr), args=[first, *_]) if attr in VIEW_FUNCTIONS:
                node = first
            case ast.Attribute():
                return _dotted(node)
            case _:
                return ""


def _dotted(node: ast.expr) -> str:
    """The text of a chain of attributes (`self.layer.weight`); "" for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    before = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else ""


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "einops")


def is_reversible_view(node: ast.expr) -> bool:
    """Whether an expression is certainly a view of a name and each step from the name to it has an
    inverse.
    """
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
    """Whether an index consists of slices and literal ints, which select a view and never copy."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, (ast.Slice, ast.UnaryOp)) or (isinstance(p, ast.Constant) and not isinstance(p.value, bool)) for p in parts)


def stale_aliases(
    function: ast.AST, name: str, line: int, handed_back: Iterable[str] = (), copies: Copies = lambda container: True
) -> list[Alias]:
    """The aliases along which a write to `name` at `line` must be passed on, nearest first.

    They lead to each name that is read afterwards, and to those in `handed_back`, which the caller
    reads at the end.
    """
    reached = _reachable_aliases(function, name, line, copies)
    targets: set[str] = set()
    for other in reached:
        if other in handed_back or "." in other or read_after(function, other, line):
            # A name is reached through others: those in between need the new value to compute the
            # next.
            while other != name and other not in targets:
                targets.add(other)
                other = reached[other][0]
    return [alias for other, (_, alias) in reached.items() if other in targets]


def certain_aliases(function: ast.AST, name: str, line: int) -> dict[str, bool]:
    """Name → whether its value can be recomputed, for the names whose memory a write to `name` at
    `line` certainly changes.

    `name` itself is among them.
    """
    reached = _reachable_aliases(function, name, line)
    up_to_date = {name: not _becomes_other_view(function, name, 0, line)}
    for other, (by, alias) in reached.items():
        if by in up_to_date and alias.sure:
            up_to_date[other] = up_to_date[by] and alias.exact
    return up_to_date


def _reachable_aliases(function: ast.AST, name: str, line: int, copies: Copies = lambda container: True) -> dict[str, tuple[str, Alias]]:
    """Name that shares the memory of `name` at `line` → (the name before it on the path, their
    alias); nearest first.
    """
    rebound = list(_rebindings(function))
    container_aliases = list(_container_aliases(function, copies))
    all_aliases = [*_aliases(function), *container_aliases]
    aliases = [alias for alias in all_aliases if alias.line <= line]
    # An alias made below the write matters in a loop: the next iteration writes with it in place.
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
            # One side was rebound before the write, so that the two no longer share memory.
            if any(n in (current, other) and alias.line < at < line for n, at in rebound):
                continue
            anew = any(_becomes_other_view(function, n, alias.line, line) for n in (current, other))
            reached[other] = (current, replace(alias, exact=False) if anew else alias)
            todo.append(other)
    return reached


def _survives_iteration(function: ast.AST, alias: Alias, name: str, line: int) -> bool:
    """Whether an alias of `name` that one iteration of a loop makes after `line` still holds at
    `line` in the next iteration.
    """
    for loop in walk(function):
        if isinstance(loop, (ast.For, ast.While)) and loop.lineno < line < alias.line <= (loop.end_lineno or 0):
            if not any(bound == name and loop.lineno < at < line for bound, at in _rebindings(loop)):
                return True
    return False


def _becomes_other_view(function: ast.AST, name: str, start: int, end: int) -> bool:
    """Whether a name becomes another view of the same memory between two lines, also by a later
    iteration of a loop.
    """
    loops = [n for n in walk(function) if isinstance(n, (ast.For, ast.While)) and start < n.lineno < end <= (n.end_lineno or n.lineno)]
    # Any reassigned view counts here, since a doubtful one is no longer exact either.
    lines = [target.lineno for target in reassigned_views(function, sure=False) if target.id == name]
    return any(start < line < end or any(loop.lineno < line <= (loop.end_lineno or 0) for loop in loops) for line in lines)


def reassigned_views(function: ast.AST, sure: bool = True) -> Iterator[ast.Name]:
    """The targets of `x = x.view(…)`, after which `x` is another view of the same memory.

    With `sure` only those whose value is certainly a view.
    """
    for node in walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(target := node.targets[0], ast.Name):
            if root(node.value) == target.id and (is_reversible_view(node.value) or not sure):
                yield target


def read_after(function: ast.AST, name: str, line: int) -> bool:
    """Whether the value that `name` has at `line` is read later, also in the next iteration of a loop."""
    loops = [n for n in walk(function) if isinstance(n, (ast.For, ast.While)) and n.lineno < line <= (n.end_lineno or n.lineno)]
    # Nothing after a `return` reads the name, and no loop comes round again.
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
    """The `return` or `raise` around `line`, after which the function runs nothing more; `None`
    elsewhere and inside `try`.
    """
    around = [node for node in walk(function) if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)]
    # `finally` runs after a `return` inside `try`, and an inner function returns to its own caller.
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
        # Iterating over a tensor gives views of its rows.
        elif isinstance(node, (ast.For,)) and (base := root(node.iter)):
            for name in walk(node.target):
                if isinstance(name, ast.Name):
                    yield Alias(name.id, base, node.lineno)


def _container_aliases(function: ast.AST, copies: Copies) -> Iterator[Alias]:
    """Aliases between a value and the list, attribute or object that stores it without a copy."""
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
                # These store on an object, so that a later read may happen anywhere.
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
    """The elements of a list, tuple or dict display, nested ones included."""
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
    """(name, line) of each assignment that gives a name something other than a view of itself."""
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
    """The names that a function binds: its parameters and its assignment targets."""
    inner = [node for statement in ast.iter_child_nodes(function) for node in [statement, *walk(statement)]]
    stored = {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in inner if isinstance(node, ast.arg)}


def binding_loop(function: ast.AST, name: str, line: int) -> ast.For | None:
    """The loop around `line` whose variable `name` still is; a write to it may change the iterated
    tensor. `None` where it was rebound.
    """
    for loop in walk(function):
        if not isinstance(loop, ast.For) or not loop.lineno < line <= (loop.end_lineno or line):
            continue
        if any(isinstance(n, ast.Name) and n.id == name for n in walk(loop.target)):
            return None if any(bound == name and loop.lineno < at < line for bound, at in _rebindings(loop)) else loop
    return None
