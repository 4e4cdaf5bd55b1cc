"""Paths of checkpoints, which are folders in the rewrite: what asks for a file there, copies, moves or removes it has to take folders."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.programs.rewrite.names import Imports, code

WRITTEN = {"torch.save": (1, "f"), "torch.load": (0, "f")}
"""Call → position and name of its path."""
REMOVING = ("os.remove", "os.unlink")
TAKING_FOLDERS = {
    "shutil.copyfile": "copy_checkpoint",
    "shutil.copy": "copy_checkpoint",
    "shutil.copy2": "copy_checkpoint",
    "shutil.move": "move_checkpoint",
    "os.rename": "move_checkpoint",
    "os.replace": "move_checkpoint",
}
"""Call → the helper that does the same to a checkpoint. Both arguments are paths."""


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


def takes_folder(original: cst.Call, updated: cst.Call, dotted: str, paths: frozenset[str]) -> cst.Call | None:
    """`os.remove(path)` → `remove_checkpoint(path)` and `shutil.copyfile(path, best)` → `copy_checkpoint(path, best)`, where the path may be a
    checkpoint's; else None. The helpers take plain files too: which paths a script removes is often known to `glob` alone.
    """
    if not paths or any(arg.keyword is not None or arg.star for arg in original.args):
        return None
    if dotted in REMOVING and len(original.args) == 1 and (_bare(path := original.args[0].value) in paths or not _is_text(path)):
        return updated.with_changes(func=cst.Name("remove_checkpoint"))
    if dotted in TAKING_FOLDERS and len(original.args) == 2 and _bare(original.args[0].value) in paths:
        return updated.with_changes(func=cst.Name(TAKING_FOLDERS[dotted]))
    if not isinstance(original.func, cst.Attribute) or _bare(original.func.value) not in paths:
        return None
    helper = {("unlink", 0): "remove_checkpoint", ("rename", 1): "move_checkpoint", ("replace", 1): "move_checkpoint"}
    name = helper.get((original.func.attr.value, len(original.args)))
    return updated.with_changes(func=cst.Name(name), args=[_object_of(updated), *updated.args]) if name else None


def _object_of(method: cst.Call) -> cst.Arg:
    return cst.Arg(cst.ensure_type(method.func, cst.Attribute).value)


def _is_text(value: cst.BaseExpression) -> bool:
    return isinstance(value, (cst.SimpleString, cst.ConcatenatedString))


def _bare(value: cst.BaseExpression) -> str:
    """Its text without parentheses around it."""
    return code(value.with_changes(lpar=(), rpar=()))
