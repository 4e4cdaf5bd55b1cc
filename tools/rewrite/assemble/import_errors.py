"""Which names a statement uses while its file is imported. A statement that uses a stub at that
time becomes a stub itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from migrate_agent.tools.rewrite.rules.cleanup.unmigrated_references import STORING


def names_used(statements: Iterable[ast.stmt]) -> frozenset[str]:
    """The names that running the statements uses, other than by storing their values."""
    return frozenset(name for statement in statements for name in _used(statement))


def names_bound(statement: ast.stmt) -> tuple[str, ...]:
    """The names that a definition or an assignment to plain names binds; empty for statements that
    do anything else.
    """
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Assign(targets=found) if all(isinstance(one, ast.Name) for one in found):
            return tuple(one.id for one in found if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            return (name,)
    return ()


def aliased_name(statements: Sequence[ast.stmt]) -> str:
    """`x` for the single statement `y = x`; "" for any others."""
    match statements:
        case [ast.Assign(value=ast.Name(id=name))]:
            return name
    return ""


def _used(node: ast.AST) -> Iterator[str]:
    """The names that running a node uses at once, without those that it only stores in a table, a
    default or a name.
    """
    match node:
        case ast.Lambda():
            yield from _used_by_storing(*node.args.defaults, *filter(None, node.args.kw_defaults))
        # The body runs when the function is called; decorators and defaults run now.
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            for one in node.decorator_list:
                yield from _used(one)
            yield from _used_by_storing(*node.args.defaults, *filter(None, node.args.kw_defaults))
        # The body of a class runs at once, unlike that of a function.
        case ast.ClassDef():
            for part in (*node.bases, *node.keywords, *node.decorator_list, *node.body):
                yield from _used(part)
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is not None:
            yield from _used_by_storing(value)
        case ast.Dict():
            yield from _used_by_storing(*node.values)
            for key in filter(None, node.keys):
                yield from _used(key)
        case ast.List() | ast.Tuple() | ast.Set():
            yield from _used_by_storing(*node.elts)
        case ast.Call(func=ast.Name(id=name)) if name in STORING:
            yield from _used_by_storing(*(keyword.value for keyword in node.keywords))
            for argument in node.args if name != "partial" else ():  # these are iterated over
                yield from _used(argument)
            yield from _used_by_storing(*node.args) if name == "partial" else ()
        case ast.Name(id=name, ctx=ast.Load()):
            yield name
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _used(child)


def _used_by_storing(*values: ast.expr) -> Iterator[str]:
    """The names that storing these values uses: storing a bare name uses nothing of it."""
    for value in values:
        if not isinstance(value, ast.Name):
            yield from _used(value)
