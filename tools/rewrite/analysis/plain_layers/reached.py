"""What a repository reaches of the installed packages that are rewritten along with it.

A package is in the inventory with all files that imports reach, hundreds of them for torchvision. What it
does with layers matters only in the statements that the repository's own code leads to.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate_agent.tools.closure import Closures, Name
from migrate_agent.tools.rewrite.tables.symbols import defined_names

if TYPE_CHECKING:
    from migrate_agent.tools.rewrite.analysis.repo import FileModel


def without_unreached(files: Iterable[FileModel]) -> list[FileModel]:
    """The files, those of installed packages with the top-level statements alone that the other files lead to."""
    every = list(files)
    own = [model for model in every if not model.file.adopted]
    if len(own) == len(every):
        return every
    closures = Closures([model.file for model in every], {model.file.path: model.text for model in every})
    roots = [Name(model.file.path, name) for model in own for name in (*model.top_names, "")]
    names = closures.of(roots).digests
    parts = [(model, _reached(model, names)) for model in every if model.file.adopted]
    return [*own, *(replace(model, tree=ast.Module(body, [])) for model, body in parts if body)]


def _reached(model: FileModel, names: Collection[str]) -> list[ast.stmt]:
    path = model.file.path
    return [statement for statement in model.tree.body if any(str(Name(path, name)) in names for name in defined_names(statement))]
