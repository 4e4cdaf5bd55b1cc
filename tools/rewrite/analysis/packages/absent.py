"""Files of the repository that cannot be imported here, because a package that they need is not installed: often kernels to be compiled."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator

from migrate_agent.tools.rewrite.analysis.repo import FileModel, Repo


def absent_package(repo: Repo, file: FileModel, visited: frozenset[str] = frozenset()) -> str:
    """The package without which the import of a file ends, directly or by way of other files of the repository; "" where there is none.

    Imports inside of `try` and of functions may fail without an end of the import.
    """
    if file.file.path in visited:
        return ""
    visited |= {file.file.path}
    for module in _imported_modules(file.tree):
        inside = repo.modules.get(module)
        if inside is not None:
            if package := absent_package(repo, inside, visited):
                return package
        elif not _is_there(repo, module.partition(".")[0]):
            return module.partition(".")[0]
    return ""


def _imported_modules(tree: ast.Module) -> Iterator[str]:
    """The modules that the file's own statements import by absolute names."""
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module


def _is_there(repo: Repo, package: str) -> bool:
    if package in sys.stdlib_module_names or any(module.partition(".")[0] == package for module in repo.modules):
        return True
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # a module that was put into `sys.modules` without a file
        return True
