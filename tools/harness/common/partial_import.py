"""Imports files of the user by the statements that a unit needs (`tools.import_closure`), on the side of the original. Standard library only."""

from __future__ import annotations

import ast
import copy
import importlib.machinery
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.util import decode_source
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

Kept = Mapping[int, Sequence[str] | None]
_parts: dict[str, tuple[bool, Kept]] = {}
"""Real path of a file → whether it is a script, and what is kept of it."""
_all: list[bool] = [False]


def use_roots(roots: Iterable[str]) -> None:
    """From now on import from these folders of the job's root too."""
    folders = [os.path.join(sys.path[0], root) for root in roots]
    sys.path[1:1] = [folder for folder in folders if folder not in sys.path]


@contextmanager
def root_stays_first() -> Iterator[None]:
    """Keeps the job's root where `sys.path` begins: what is imported may put folders of its own there."""
    first = sys.path[:1]
    try:
        yield
    finally:
        if sys.path[:1] != first:
            sys.path[:] = [*first, *(folder for folder in sys.path if folder not in first)]


def use_parts(parts: Mapping[str, Any], root: Path) -> None:
    """From now on import these files (by path relative to `root`) by their parts, where they are scripts. What other parts say is forgotten."""
    rows = {os.path.realpath(root / path): (part["script"], dict(part["kept"])) for path, part in parts.items()}
    if rows == _parts:
        return
    _parts.clear()
    _parts.update(rows)
    _all[:] = [False]
    if parts and not any(isinstance(finder, PartialFinder) for finder in sys.meta_path):
        # After finders that count or observe: theirs load parts too.
        sys.meta_path.insert(sys.meta_path.index(importlib.machinery.PathFinder), PartialFinder())


def use_all_parts() -> bool:
    """Import all files by their parts, not scripts alone; forget those that were imported in vain. False where nothing changes by it."""
    if not _parts or _all[0]:
        return False
    _all[:] = [True]
    # A package that failed is gone, and what it had imported would not be bound in it again.
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    gone = [name for name, file in files.items() if file and os.path.realpath(file) in _parts]
    # The path of a folder without `__init__.py` is read from its package, which must not be gone before it.
    below = [name for name, file in files.items() if file is None and any(name.startswith(f"{package}.") for package in gone)]
    for name in (*gone, *below):
        del sys.modules[name]
    return True


def _is_partial(path: str) -> bool:
    part = _parts.get(os.path.realpath(path))
    return part is not None and (part[0] or _all[0])


def reduced(tree: ast.Module, path: str) -> ast.Module:
    """The statements of a file that are to run: all, or its part."""
    if not _is_partial(path):
        return tree
    kept = _parts[os.path.realpath(path)][1]
    return ast.Module(list(_statements(tree.body, kept)), tree.type_ignores)


def _statements(body: Sequence[ast.stmt], kept: Kept) -> Iterable[ast.stmt]:
    for index, statement in enumerate(body):
        docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if docstring or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            yield statement
        elif index in kept:
            names = kept[index]
            if names is not None and isinstance(statement, (ast.Import, ast.ImportFrom)):
                statement.names = [
                    alias for alias in statement.names if {alias.asname or alias.name.partition(".")[0], alias.name} & {*names}
                ]
            yield from _each_guarded(statement) if _all[0] and isinstance(statement, (ast.Import, ast.ImportFrom)) else [statement]


class Absent:
    """Stands for a name whose import failed. Code that no call runs may name it; to use it raises the error of the import."""

    def __init__(self, error: ImportError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self._error}, so that {name!r} of it cannot be read") from self._error

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises the error, as what derives from it, subscripts it or asks for its instances does."""
        raise self._error

    __getitem__ = __instancecheck__ = __subclasscheck__ = __mro_entries__ = __call__


def _each_guarded(statement: ast.Import | ast.ImportFrom) -> Iterable[ast.stmt]:
    """One import for each name, which binds it to `Absent` where it fails: a package that is not installed, a name that it has no more."""
    for alias in statement.names:
        single = copy.copy(statement)
        single.names = [alias]
        if alias.name == "*":
            yield single
            continue
        name = alias.asname or alias.name.partition(".")[0]
        guard = ast.parse(
            f"try:\n    pass\nexcept ImportError as _error:\n    {name} = __import__({__name__!r}, fromlist=['Absent']).Absent(_error)"
        )
        for node in ast.walk(guard):
            ast.copy_location(node, alias)
        assert isinstance(guard.body[0], ast.Try)
        guard.body[0].body = [single]
        yield guard.body[0]


class PartialLoader(importlib.machinery.SourceFileLoader):
    """Loads a file's part, past the bytecode cache."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of what is to run of the file."""
        source = decode_source(self.get_data(self.path))
        return compile(reduced(ast.parse(source, self.path), self.path), self.path, "exec", dont_inherit=True)


class PartialFinder(MetaPathFinder):
    """Finds the files that are imported by their parts."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of such a file; `None` for all others."""
        if fullname.partition(".")[0] in sys.stdlib_module_names or fullname.startswith("torch."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return None
        if not _is_partial(spec.origin):
            return None
        spec.loader = PartialLoader(fullname, spec.origin)
        return spec
