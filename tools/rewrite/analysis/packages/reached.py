"""What a repository reaches of the installed packages that are rewritten along with it.

A package is in the inventory with all files that imports reach, hundreds of them for torchvision. The
rewriter looks at those that the repository's own code leads to, name by name, and at the statements in
them that it leads to where it decides how layers are used.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

from migrate_agent.tools.closure import Closures, Name
from migrate_agent.tools.scan.symbols import defined_names
from migrate_agent.tools.types import SourceFile

FEW = 20
"""So many files of installed packages are all looked at."""
MOST_KEPT = 16
"""Closures in the cache: two for each of several projects of a repository."""


class InventoryFile(Protocol):
    """A parsed file, with where it comes from, the names that it defines, and those that it imports."""

    file: SourceFile
    text: str
    tree: ast.Module
    bindings: dict[str, str]
    stars: list[str]
    top_names: set[str]

    @property
    def classes(self) -> Collection[str]: ...


File = TypeVar("File", bound=InventoryFile)


def reached_names(files: Collection[InventoryFile]) -> Collection[str]:
    """The names (`path:name`) of the closure of all that the repository's own files define and do."""
    own = frozenset(Name(model.file.path, name) for model in files if not model.file.adopted for name in (*model.top_names, ""))
    return _closure(tuple((model.file, model.text) for model in files), own)


@lru_cache(maxsize=MOST_KEPT)
def _closure(texts: Sequence[tuple[SourceFile, str]], names: frozenset[Name]) -> frozenset[str]:
    """The closure of names among files. It takes seconds for a large package, and the same files are asked about with every new recording."""
    closures = Closures([file for file, _ in texts], {file.path: text for file, text in texts})
    return frozenset(closures.of(sorted(names)).digests)


def reached_files(files: Collection[InventoryFile], modules: Mapping[str, InventoryFile], observed: Collection[str]) -> set[str]:
    """The paths of the repository's own files, and of those of installed packages that it leads to or that were `observed` to run.

    Packages and files that only hand a name on are among them.
    """
    own = {model.file.path for model in files if not model.file.adopted}
    if len(files) - len(own) <= FEW:
        return {model.file.path for model in files}
    by_path = {model.file.path: model for model in files}
    paths = own.union({name.rpartition(":")[0] or name for name in reached_names(files)}, observed) & by_path.keys()
    ways = (path for reached in list(paths) for dotted in _imported(by_path[reached]) for path in _on_the_way(dotted, modules))
    return paths.union(ways)


def _imported(model: InventoryFile) -> Iterator[str]:
    yield from model.bindings.values()
    yield from model.stars


def _on_the_way(dotted: str, modules: Mapping[str, InventoryFile], visited: frozenset[str] = frozenset()) -> Iterator[str]:
    """The files that an import of a dotted name goes through: packages, those that hand it on, and the one that defines it."""
    parts = dotted.split(".")
    there = [size for size in range(1, len(parts) + 1) if ".".join(parts[:size]) in modules]
    if not there or dotted in visited:
        return
    yield from (modules[".".join(parts[:size])].file.path for size in there)
    model, rest = modules[".".join(parts[: there[-1]])], parts[there[-1] :]
    if rest and rest[0] in model.bindings:
        yield from _on_the_way(".".join([model.bindings[rest[0]], *rest[1:]]), modules, visited | {dotted})
    elif rest and rest[0] not in model.top_names:
        for star in model.stars:
            yield from _on_the_way(".".join([star, *rest]), modules, visited | {dotted})


def without_unreached(files: Iterable[File]) -> list[File]:
    """The files, those of installed packages with the top-level statements alone that the other files lead to."""
    every = list(files)
    own = [model for model in every if not model.file.adopted]
    if len(own) == len(every):
        return every
    names = reached_names(every)
    return [*own, *(part for model in every if model.file.adopted if (part := _reached(model, names)).tree.body)]


def _reached(model: File, names: Collection[str]) -> File:
    """The file with the statements alone that define one of the names."""
    path = model.file.path
    part = copy.copy(model)
    body = [statement for statement in model.tree.body if any(str(Name(path, name)) in names for name in defined_names(statement))]
    part.tree = ast.Module(body, [])
    return part
