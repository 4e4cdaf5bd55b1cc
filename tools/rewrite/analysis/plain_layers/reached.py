"""What a repository reaches of the installed packages that are rewritten along with it.

A package is in the inventory with all files that imports reach, hundreds of them for torchvision. What it
does with layers matters only in the statements that the repository's own code leads to.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable
from typing import Protocol, TypeVar

from migrate_agent.tools.closure import Closures, Name
from migrate_agent.tools.rewrite.tables.symbols import defined_names
from migrate_agent.tools.types import SourceFile


class InventoryFile(Protocol):
    """A parsed file, with where it comes from and the names that it defines."""

    file: SourceFile
    text: str
    tree: ast.Module
    bindings: dict[str, str]
    top_names: set[str]

    @property
    def classes(self) -> Collection[str]: ...


File = TypeVar("File", bound=InventoryFile)


def without_unreached(files: Iterable[File]) -> list[File]:
    """The files, those of installed packages with the top-level statements alone that the other files lead to."""
    every = list(files)
    own = [model for model in every if not model.file.adopted]
    if len(own) == len(every):
        return every
    closures = Closures([model.file for model in every], {model.file.path: model.text for model in every})
    roots = [Name(model.file.path, name) for model in own for name in (*model.top_names, "")]
    names = closures.of(roots).digests
    return [*own, *(part for model in every if model.file.adopted if (part := _reached(model, names)).tree.body)]


def _reached(model: File, names: Collection[str]) -> File:
    """The file with the statements alone that define one of the names."""
    path = model.file.path
    part = copy.copy(model)
    body = [statement for statement in model.tree.body if any(str(Name(path, name)) in names for name in defined_names(statement))]
    part.tree = ast.Module(body, [])
    return part
