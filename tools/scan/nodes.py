"""The nodes of a syntax tree, listed once: inference walks the same trees many times."""

from __future__ import annotations

import ast


def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of `ast.walk`, in its order, cached on `node`. Only for trees that no code changes afterwards."""
    nodes: tuple[ast.AST, ...] | None = node.__dict__.get("_walked")
    if nodes is None:
        nodes = node.__dict__["_walked"] = tuple(ast.walk(node))
    return nodes
