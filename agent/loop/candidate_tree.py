"""The tree that a rewrite is judged in: the rewrite, wherever it lies, the rest of the mirror, and every torch-free file of the repository."""

from __future__ import annotations

import ast
import os.path
import posixpath
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.verified_units import read_mirror
from migrate_agent.tools.types import Inventory, SourceFile, Unit
from migrate_agent.tools.verify.evidence.parsed_source import closure


def candidate_of(inventory: Inventory, unit: Unit, against: str) -> tuple[Inventory, Unit, dict[str, str]]:
    """The unit with the rewrite as its target (in the inventory, too), and the candidate tree by path.

    `against` is `PATH[:NAME]`, "" for the mirror's own place; a path is relative to the repository, else to the current folder. What can be
    imported beside the original stays where it is; any other file (out of the repository, in a hidden folder, beside `src`) is laid out below
    the original's import root, with what it imports from its own surroundings. Raises `UsageError` where the file or the class is not there.
    """
    path, _, name = against.partition(":")
    file = next(file for file in inventory.files if file.path == unit.source)
    rewrite = _find_file(inventory.root, path or unit.target, unit)
    text = _read(rewrite, path or unit.target)
    if not _may_define(text, name or unit.name):
        raise UsageError(f"{path or unit.target} defines no {name or unit.name}")
    files = read_mirror(inventory.root)
    files |= {file.path: _read(inventory.root / file.path, file.path) for file in inventory.files if not file.uses_torch and not file.error}
    target, brought = _lay_out(inventory, rewrite, file.import_root)
    files |= brought
    files[target] = f"{text}\n{unit.name} = {name}\n" if name and name != unit.name else text
    moved = replace(unit, target=target)
    units = tuple(moved if other.id == unit.id else other for other in inventory.units)
    sources = tuple(_mirrored(file, target) if file.path == unit.source else file for file in inventory.files)
    return replace(inventory, units=units, files=sources), moved, files


def _find_file(root: Path, path: str, unit: Unit) -> Path:
    """The file, without `..`, and below `root` where it lies there by way of links. Raises `UsageError`."""
    for start in (root, Path.cwd()):
        file = Path(os.path.abspath(start / path))
        if file.is_dir():
            raise UsageError(f"{path} is a folder: name the file in it that holds the rewrite of {unit.id}")
        if file.exists():
            real, home = file.resolve(), root.resolve()
            return root / real.relative_to(home) if real.is_relative_to(home) and not file.is_relative_to(root) else file
    raise UsageError(f"{path} is not there: write the rewrite of {unit.id}, or say with --against where it is")


def _lay_out(inventory: Inventory, rewrite: Path, import_root: str) -> tuple[str, dict[str, str]]:
    """Where the rewrite goes in the candidate tree, and what is laid out with it, by path (no file of the original).

    Of the folders that a file may be imported from (the original's, its own, the repository's), the first counts from which most of its imports
    are found.
    """
    home = Path(os.path.abspath(inventory.root))
    starts = dict.fromkeys((Path(os.path.abspath(home / import_root)), _top(rewrite), home))
    roots = [start for start in starts if _importable(rewrite, start)] or [_top(rewrite)]
    needed = {start: [source.path for source in closure(start, rewrite.relative_to(start).as_posix(), ("",))] for start in roots}
    start = max(roots, key=lambda start: len(needed[start]))
    others = {rewrite, *(home / file.path for file in inventory.files if file.uses_torch)}
    path = rewrite.relative_to(start)
    target = posixpath.join(import_root, path.with_name(path.stem.replace(".", "_") + ".py").as_posix())
    return target, {posixpath.join(import_root, path): _read(start / path, path) for path in needed[start] if start / path not in others}


def _top(file: Path) -> Path:
    """The folder that a file is imported from by itself: the one above its topmost package."""
    folder = file.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _importable(file: Path, start: Path) -> bool:
    """Whether the file can be imported from this folder: it lies below, and its module's name has no further dots."""
    return (
        file.is_relative_to(start)
        and file.suffix == ".py"
        and not any("." in part for part in file.relative_to(start).with_suffix("").parts)
    )


def _mirrored(file: SourceFile, target: str) -> SourceFile:
    """The file with its mirror at another place, imported from the same folder."""
    if target == file.target:
        return file
    inside = posixpath.relpath(target, file.import_root or ".")
    return replace(file, target=target, target_module=inside.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))


def _may_define(text: str, name: str) -> bool:
    """Whether the class or function is there; what does not parse is the verifier's to refuse."""
    try:
        body: Sequence[ast.stmt] = ast.parse(text).body
    except (SyntaxError, ValueError):
        return True
    for part in name.split("."):
        definitions = [node for node in body if part in _bound(node)]
        if not definitions:
            return False
        body = getattr(definitions[-1], "body", [])
    return True


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name for alias in node.names]
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)]


def _read(file: Path, path: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason}") from None
