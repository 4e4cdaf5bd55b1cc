"""Plain classes of a port whose objects go from call to call by the caller's hand alone: nothing of the port keeps one.

What such an object counts or advances is a part of the call that it is handed to, and of no later one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

Parents = Mapping[ast.AST, ast.AST]
LOOKING = frozenset({"isinstance", "len", "bool", "print"})
"""Functions that look at an object and keep nothing of it."""


def handed_alone(trees: Sequence[ast.Module], constructions: Iterable[str] = ()) -> frozenset[str]:
    """The names of the plain classes of these files whose objects no attribute, container or result holds, as far as each use of them shows.

    `constructions` are texts that construct modules: what they name is kept.
    """
    words = {word for text in constructions for word in re.findall(r"\w+", text)}
    plain = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef) and _is_plain(node) and node.name not in words]
    if not plain:
        return frozenset()
    nodes = [node for tree in trees for node in ast.walk(tree)]
    parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    return frozenset(node.name for node in plain if _is_handed_alone(node, nodes, parents))


def _is_plain(node: ast.ClassDef) -> bool:
    bases = [base.id if isinstance(base, ast.Name) else "" for base in node.bases]
    return set(bases) <= {"object"} and not node.keywords and not node.decorator_list


def _is_handed_alone(cls: ast.ClassDef, nodes: Sequence[ast.AST], parents: Parents) -> bool:
    if not all(_keeps_itself_out(method, parents) for method in cls.body if isinstance(method, ast.FunctionDef)):
        return False
    if any(_is_renamed(node, cls.name) or (isinstance(node, ast.ClassDef) and node.name == cls.name and node is not cls) for node in nodes):
        return False
    names = {node.arg for node in nodes if isinstance(node, ast.arg) and node.annotation is not None and _names(node.annotation, cls.name)}
    uses = [node for node in nodes if _is_class(node, cls.name) and not _is_annotation(node, parents)]
    before = set[str]()
    while True:
        rows = [_bound_by(node, parents) for node in uses]
        rows += [
            _holders(node, parents) for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        ]
        if None in rows:
            return False
        before, names = names, names.union(*filter(None, rows))
        if names == before:
            return names <= _of_functions(nodes, names)


def _of_functions(nodes: Sequence[ast.AST], names: Collection[str]) -> set[str]:
    """Those of the names that are variables or parameters of functions of these files, and no field of a class."""
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    variables = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    fields = {node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    return ((parameters | variables) & set(names)) - fields


def _is_renamed(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.alias) and node.name == name and node.asname not in (None, name)


def _keeps_itself_out(method: ast.FunctionDef, parents: Parents) -> bool:
    """Whether a method hands its object to nothing: it reads and writes attributes of it, or gives it back."""
    own = method.args.args[0].arg if method.args.args else ""
    uses = [node for node in ast.walk(method) if isinstance(node, ast.Name) and node.id == own]
    return all(isinstance(parents[node], (ast.Attribute, ast.Return)) for node in uses)


def _names(annotation: ast.expr, name: str) -> bool:
    return name in re.findall(r"\w+", ast.unparse(annotation))


def _is_class(node: ast.AST, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and (node.id if isinstance(node, ast.Name) else node.attr) == name


def _is_annotation(node: ast.AST, parents: Parents) -> bool:
    while node in parents:
        child, node = node, parents[node]
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is child:
            return True
        if isinstance(node, ast.FunctionDef) and node.returns is child:
            return True
        if isinstance(node, ast.stmt):
            return False
    return False


def _bound_by(node: ast.AST, parents: Parents) -> set[str] | None:
    """The names that hold what a use of the class makes; None where it is kept, or goes ways that the text does not show."""
    call = parents[node]
    if isinstance(call, ast.Call) and call.func is node:
        return _holders(call, parents)
    return set() if isinstance(call, ast.Call) and _looks(call) else None


def _holders(node: ast.AST, parents: Parents) -> set[str] | None:
    """The further names that hold an object after a use of it; None where something else may."""
    match parents[node]:
        case ast.Attribute() | ast.Expr() | ast.Compare():
            return set()
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if test is node:
            return set()
        case ast.UnaryOp(op=ast.Not()):
            return set()
        case ast.Assign(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
            return {*_ids(targets)}
        case ast.keyword(arg=str(name)):
            return {name}
        case ast.Call() as call if _looks(call):
            return set()
    return None


def _ids(nodes: Collection[ast.expr]) -> Iterator[str]:
    return (node.id for node in nodes if isinstance(node, ast.Name))


def _looks(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in LOOKING
