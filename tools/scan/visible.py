"""The part of a repository that one file sees, where several of its projects have files of the same name.

`a/model.py` and `b/model.py`, each imported as `model` by what lies beside it, are never in one process. What a file imports, and what is
rewritten and run for it, comes from the files that its own `sys.path` leads to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from migrate_agent.tools.types import Inventory, SourceFile

_USUAL = ("", "src")
"""Import roots that every file may use besides its own."""
_views: list[tuple[Inventory, dict[tuple[tuple[str, ...], ...], Inventory]]] = []


def visible_from(inventory: Inventory, path: str) -> Inventory:
    """The inventory without the files that others of the same module name hide from the file at `path`, those of its own import root first.

    It is `inventory` itself where no names clash, and the same object for all files that see the same. Raises `KeyError` for an unknown path.
    """
    near = source_file(inventory.files, path)
    roots = tuple(
        dict.fromkeys(
            [*near.leading_roots, near.import_root, *near.added_roots, *_USUAL, *sorted({file.import_root for file in inventory.files})]
        )
    )
    hidden = _hidden(inventory.files, roots)
    if not hidden:
        return inventory
    # By identity: the rewriter keeps its work for each inventory, and comparing two takes long.
    if not _views or _views[0][0] is not inventory:
        _views[:] = [(inventory, {})]
    views = _views[0][1]
    key = (roots, tuple(sorted(hidden)))
    if key not in views:
        views[key] = replace(
            inventory,
            # The order of files is that of the import roots on `sys.path` (`record.session.plan`).
            files=tuple(file for root in roots for file in inventory.files if file.import_root == root and file.path not in hidden),
            units=tuple(unit for unit in inventory.units if unit.source not in hidden),
            findings=tuple(finding for finding in inventory.findings if finding.source not in hidden),
        )
    return views[key]


def source_file(files: Iterable[SourceFile], path: str) -> SourceFile:
    """The file at a path. Raises `KeyError`."""
    for file in files:
        if file.path == path:
            return file
    raise KeyError(path)


def _hidden(files: Sequence[SourceFile], roots: Sequence[str]) -> set[str]:
    """The paths of files that cannot be imported beside those that the import roots before theirs give."""
    # Nothing imports the `__init__.py` of a folder that is an import root itself.
    files = [file for file in files if file.module != "__init__"]
    if len({file.module for file in files}) == len(files):
        return set()
    taken: dict[str, str] = {}
    hidden: set[str] = set()
    for root in roots:
        own = [file for file in files if file.import_root == root]
        hidden |= {file.path for file in own if any(name in taken for name in _closed(file.module))}
        # A folder without `__init__.py` may go on under another import root: only its files are taken.
        taken |= {file.module: file.path for file in own if file.path not in hidden}
    return hidden


def _closed(module: str) -> Iterable[str]:
    """The names that must still be free for a module to be imported: its own, and those of the packages around it."""
    parts = module.split(".")
    return (".".join(parts[:size]) for size in range(1, len(parts) + 1))
