"""Methods that do nothing but give a state dictionary which they download: `def get_state_dict(self): return load_state_dict_from_url(self.url)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrate_agent.tools.rewrite.analysis.downloads.loading import DOWNLOADS
from migrate_agent.tools.rewrite.analysis.repo import FileModel, FunctionNode, Repo, dotted_name


def download_methods(repo: Repo) -> frozenset[str]:
    """The names of such methods of classes that are no modules, where no method of another kind has the same name."""
    # Kept on the repository: each file asks.
    if "_download_methods" not in repo.__dict__:
        rows = [(name, only_downloads(method, file)) for file, name, method in _methods(repo)]
        others = {name for name, downloads in rows if not downloads}
        repo.__dict__["_download_methods"] = frozenset({name for name, downloads in rows if downloads} - others)
    return repo.__dict__["_download_methods"]  # type: ignore[no-any-return]


def _methods(repo: Repo) -> Iterator[tuple[FileModel, str, FunctionNode]]:
    for file in repo.files.values():
        for model in file.classes.values():
            yield from ((file, name, method) for name, method in model.methods.items())


def only_downloads(function: FunctionNode, file: FileModel) -> bool:
    """Whether a function does nothing but give what it downloads."""
    match function.body:
        case [ast.Return(value=ast.Call(func=called))] | [ast.Expr(value=ast.Constant()), ast.Return(value=ast.Call(func=called))]:
            return dotted_name(called, file) in DOWNLOADS
    return False
