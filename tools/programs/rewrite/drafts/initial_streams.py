"""Whether several modules of a script would draw their initial values from the same stream: two layers of one shape would begin with equal weights."""

from __future__ import annotations

import ast
from collections.abc import Iterator

LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
"""What runs its parts any number of times."""


def repeats_streams(text: str) -> bool:
    """Whether the expressions `nnx.Rngs(seed)` of a script run more than once in all."""
    sites = list(_sites(ast.parse(text), "", False))
    streams = [(function, looped) for kind, function, looped in sites if kind == "nnx.Rngs"]
    if len(streams) != 1:
        return len(streams) > 1
    function, looped = streams[0]
    calls = [again for kind, _, again in sites if kind == function]
    return looped or len(calls) > 1 or any(calls)


def _sites(node: ast.AST, function: str, looped: bool) -> Iterator[tuple[str, str, bool]]:
    """What is called, or named as a function, the function around it, and whether it stands in a loop."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and ast.unparse(child.func) == "nnx.Rngs":
            yield "nnx.Rngs", function, looped
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            yield child.id, function, looped
        inner = child.name if isinstance(child, (ast.FunctionDef, ast.ClassDef)) else function
        yield from _sites(child, inner, looped or isinstance(child, LOOPS))
