"""Which units of a candidate run their original through torchax, and what of the original their tree needs for that."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from migrate_agent.tools.types import Inventory, Unit
from migrate_agent.tools.verify.evidence.parsed_source import closure


class Wrapped(NamedTuple):
    """Units that stand in a tree as the wrapper that runs their original: all of them, and those that one unit is made of."""

    units: Sequence[Unit] = ()
    needed: Sequence[Unit] = ()


NO_WRAPPERS = Wrapped()


def wrapped_units(unit: Unit, inventory: Inventory, candidate: Path) -> Wrapped:
    """Those in a candidate's tree, and those of them that `unit` is made of."""
    from migrate_agent.tools.closure import Closures, Name  # here alone: the sandbox imports this room without the rewriter
    from migrate_agent.tools.rewrite import wrapped
    from migrate_agent.tools.scan.layout import mirror_layout

    files = {file.relative_to(candidate).as_posix(): file for file in sorted(candidate.rglob("*.py"))}
    texts = {path: file.read_text(encoding="utf-8", errors="replace") for path, file in files.items()}
    units = wrapped(inventory, texts)
    if not units:
        return NO_WRAPPERS
    names = (
        Closures(mirror_layout(sorted(texts), texts, inventory.files), texts).of([Name(unit.target, unit.name.partition(".")[0])]).digests
    )
    return Wrapped(units, tuple(one for one in units if f"{one.target}:{one.name}" in names))


def original_files(inventory: Inventory) -> set[str]:
    """The files of the original that use torch, or import one that does, as the `__init__.py` of a package may."""
    moved = [file for file in inventory.files if file.path != file.target]
    originals = {file.path for file in moved if file.uses_torch}
    while fresh := {file.path for file in moved if file.path not in originals and originals.intersection(file.imports)}:
        originals |= fresh
    return originals


def lay_originals(units: Sequence[Unit], inventory: Inventory, original: Path, candidate: Path) -> None:
    """Put the files that the originals of these units import into the candidate's tree, each in its place."""
    home = {file.path: file.import_root for file in inventory.files}
    others = dict.fromkeys(home.values())
    for path in {unit.source for unit in units if not PurePosixPath(unit.source).is_absolute()}:
        for source in closure(original, path, (home[path], *others)):
            place = candidate / source.path
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(original / source.path, place)
