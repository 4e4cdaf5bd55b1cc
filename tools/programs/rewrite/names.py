"""Names that a piece of a program reads, binds and imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

_PRINTER = cst.Module([])


def code(node: cst.CSTNode) -> str:
    """The source text of a node."""
    return _PRINTER.code_for_node(node)


def parse(node: cst.CSTNode) -> ast.AST:
    """The node as Python's own syntax tree."""
    import textwrap

    return ast.parse(textwrap.dedent(code(node)) if not isinstance(node, cst.BaseExpression) else f"({code(node)})")


def bound(node: cst.CSTNode) -> list[str]:
    """Names that a statement binds, in order: targets of assignments and loops, functions, imports."""
    return list(dict.fromkeys(_bound(parse(node))))


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    # Their targets are names of their own.
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def read(node: cst.CSTNode) -> list[str]:
    """Names that a statement or an expression reads, in order; those of comprehensions and lambdas only where they come from outside."""
    return list(dict.fromkeys(_read(parse(node), frozenset())))


def _read(node: ast.AST, inner: frozenset[str]) -> Iterator[str]:
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        inner = inner.union(*(_targets(generator.target) for generator in node.generators))
    elif isinstance(node, ast.Lambda):
        inner = inner.union(argument.arg for argument in [*node.args.args, *node.args.kwonlyargs])
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inner = inner.union((a.arg for a in [*node.args.args, *node.args.kwonlyargs]), *(frozenset(_bound(s)) for s in node.body))
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in inner:
        yield node.target.id
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in inner:
        yield node.id
    # The value of an assignment is read before its target is bound.
    for child in sorted(ast.iter_child_nodes(node), key=lambda one: getattr(one, "lineno", 0) if isinstance(one, ast.stmt) else 0):
        yield from _read(child, inner)


def _targets(node: ast.AST) -> frozenset[str]:
    return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))


class Imports:
    """What the names of a file stand for, by its import statements."""

    def __init__(self, text: str) -> None:
        self.dotted: dict[str, str] = {}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.dotted[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.dotted |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}

    def of(self, node: cst.CSTNode) -> str:
        """The dotted name of something imported, by its name or as an attribute; "" for anything else."""
        parts: list[str] = []
        while isinstance(node, cst.Attribute):
            parts.insert(0, node.attr.value)
            node = node.value
        if not isinstance(node, cst.Name) or node.value not in self.dotted:
            return ""
        return ".".join([self.dotted[node.value], *parts])
