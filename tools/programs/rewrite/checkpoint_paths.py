"""Paths of checkpoints, which are folders in the rewrite: what asks for a file there has to ask whether it exists."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.programs.rewrite.names import Imports, code

WRITTEN = {"torch.save": (1, "f"), "torch.load": (0, "f")}
"""Call → position and name of its path."""


def checkpoint_paths(module: cst.Module, imports: Imports) -> frozenset[str]:
    """The expressions, as text, that a script hands to `torch.save` and `torch.load` as paths."""
    return frozenset(_paths(module, imports))


def _paths(module: cst.Module, imports: Imports) -> Iterator[str]:
    for node in m.findall(module, m.Call()):
        if not isinstance(node, cst.Call) or (place := WRITTEN.get(imports.of(node.func))) is None:
            continue
        named = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == place[1]]
        plain = [arg.value for arg in node.args if arg.keyword is None]
        yield from (_bare(value) for value in (named or plain[place[0] : place[0] + 1]))


def asks_existence(original: cst.Call, updated: cst.Call, dotted: str, paths: frozenset[str]) -> cst.Call | None:
    """`os.path.isfile(path)` → `os.path.exists(path)`, `path.is_file()` → `path.exists()`, where the path is a checkpoint's; else None."""
    if not isinstance(updated.func, cst.Attribute) or not isinstance(original.func, cst.Attribute):
        return None
    of_os = dotted == "os.path.isfile" and len(original.args) == 1 and _bare(original.args[0].value) in paths
    of_path = original.func.attr.value == "is_file" and not original.args and _bare(original.func.value) in paths
    return updated.with_changes(func=updated.func.with_changes(attr=cst.Name("exists"))) if of_os or of_path else None


def _bare(value: cst.BaseExpression) -> str:
    """Its text without parentheses around it."""
    return code(value.with_changes(lpar=(), rpar=()))
