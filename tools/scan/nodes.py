"""The nodes of a syntax tree, listed once (inference walks the same trees many times), and which of them never run together."""

from __future__ import annotations

import ast


def walk(node: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of `ast.walk`, in its order, cached on `node`. Only for trees that no code changes afterwards."""
    nodes: tuple[ast.AST, ...] | None = node.__dict__.get("_walked")
    if nodes is None:
        nodes = node.__dict__["_walked"] = tuple(ast.walk(node))
    return nodes


def other_branches(function: ast.AST | None, line: int) -> frozenset[int]:
    """Lines of the branches that do not run where this line of the function does."""
    lines: set[int] = set()
    for node in walk(function) if function else ():
        if isinstance(node, ast.If) and node.orelse:
            arms = [range(arm[0].lineno, (arm[-1].end_lineno or arm[-1].lineno) + 1) for arm in (node.body, node.orelse)]
            if any(line in arm for arm in arms):
                lines |= {number for arm in arms if line not in arm for number in arm}
    return frozenset(lines)
