"""Finds the local names that stand for parameters: those that loops over the parameters of modules bind, and those whose data is replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from migrate_agent.tools.scan.nodes import walk

WALKED = frozenset({"parameters", "buffers"})
NAMED = frozenset({"named_parameters", "named_buffers"})
PASSING = frozenset({"list", "tuple", "reversed", "iter"})
"""Functions that give the same elements, in some order."""


def parameter_names(function: ast.AST, line: int) -> frozenset[str]:
    """The names that stand for a parameter itself on this line: `p` in `for p in m.parameters(): …`, where nothing binds it anew."""
    return frozenset(name for first, last, names in _loops(function) if first <= line <= (last or line) for name in names)


def _loops(function: ast.AST) -> Sequence[tuple[int, int | None, frozenset[str]]]:
    """First and last line of each loop that gives parameters, with their names; cached on the function, which is asked about for each of its names."""
    nodes = walk(function)
    known = function.__dict__.get("_parameter_loops")
    if known is None or known[0] is not nodes:  # else the tree has been changed
        rows = ((node, _given_by(function, node)) for node in nodes if isinstance(node, ast.For | ast.expr))
        known = function.__dict__["_parameter_loops"] = nodes, [(node.lineno, node.end_lineno, names) for node, names in rows if names]
    loops: Sequence[tuple[int, int | None, frozenset[str]]] = known[1]
    return loops


def _given_by(function: ast.AST, node: ast.AST) -> frozenset[str]:
    """The names that stand for parameters in a loop or a comprehension; none for any other node."""
    if isinstance(node, ast.For):
        return frozenset(handed_out(function, node.target, node.iter)) - _bound_in(node)
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
        return frozenset(name for part in node.generators for name in handed_out(function, part.target, part.iter))
    return frozenset()


def parameter_handles(function: ast.AST) -> frozenset[str]:
    """The local names that stand for a parameter, and whose data the function replaces: `u = getattr(m, name)` or `u = Parameter(x)`, with `u.data = y`."""
    replaced = {
        target.value.id
        for node in walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute) and target.attr == "data" and isinstance(target.value, ast.Name)
    }
    return frozenset(name for name in replaced if _makes_parameter(_only_value(function, name)))


def _makes_parameter(value: ast.expr | None) -> bool:
    """Whether this is a call that gives a parameter by its spelling: of `Parameter`, or of `getattr` without a default."""
    match value:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, _], keywords=[]):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == "Parameter"
    return False


def handed_out(function: ast.AST, target: ast.expr, walked: ast.expr, passed: frozenset[str] = frozenset()) -> Iterator[str]:
    """The names in a loop's target that stand for parameters or buffers; `passed` are names that led here, so that `x = list(x)` ends."""
    match walked, target:
        case ast.Call(func=ast.Name(id="zip"), args=iterables), ast.Tuple(elts=targets) if len(iterables) == len(targets):
            for one, iterable in zip(targets, iterables, strict=True):
                yield from handed_out(function, one, iterable, passed)
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]), ast.Tuple(elts=[_, one]):
            yield from handed_out(function, one, inner, passed)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]), _ if name in PASSING:
            yield from handed_out(function, target, inner, passed)
        case ast.Call(func=ast.Name(id="chain") | ast.Attribute(attr="chain"), args=[_, *_] as parts, keywords=[]), _:
            every = [list(handed_out(function, target, part, passed)) for part in parts]
            yield from every[0] if all(every) else ()
        case ast.Call(func=ast.Attribute(attr=name), args=[]), ast.Name(id=one) if name in WALKED:
            yield one
        case ast.Call(func=ast.Attribute(attr=name), args=[]), ast.Tuple(elts=[_, ast.Name(id=one)]) if name in NAMED:
            yield one
        case ast.Name(id=name), _ if name not in passed and (value := _only_value(function, name)) is not None:
            yield from handed_out(function, target, value, passed | {name})


def _only_value(function: ast.AST, name: str) -> ast.expr | None:
    """What a local name is set to, where that is a call and happens once."""
    stores = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)]
    values = [
        node.value
        for node in walk(function)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    ]
    return values[0] if len(stores) == len(values) == 1 and isinstance(values[0], ast.Call) else None


def _bound_in(loop: ast.For) -> set[str]:
    """Names that the body of a loop gives another value."""
    changed = {id(node.target) for node in walk(loop) if isinstance(node, ast.AugAssign)}
    inside = {id(node) for node in walk(loop.target)} | changed
    return {node.id for node in walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in inside}
