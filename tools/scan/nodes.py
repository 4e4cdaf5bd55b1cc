"""The nodes of a syntax tree, gone through once: inference asks the same trees again and again."""

from __future__ import annotations

import ast


def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """What `ast.walk` gives, in its order, kept with the node. For trees that nobody changes afterwards."""
    kept: tuple[ast.AST, ...] | None = node.__dict__.get("_walked")
    if kept is None:
        kept = node.__dict__["_walked"] = tuple(ast.walk(node))
    return kept
