"""Names that a file binds by a function that imports at run time (`Rearrange, _ =
optional_import("einops.layers.torch", "Rearrange")`).

The rewrite imports what they were observed to be.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.repo import FileModel, Repo
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observations


class _ImportedName(NamedTuple):
    """A name bound by a top-level call; `call` is (function, literal arguments as text, index in
    the result or -1).
    """

    name: str
    call: tuple[str, str, int]


def find_imports(repo: Repo, observations: Observations) -> None:
    """Bind such names in all files that make the same call. Where the examples observed different
    objects, bind nothing.
    """
    targets: dict[tuple[str, str, int], set[str]] = {}
    by_path = {path: list(_imported_names(repo, file)) for path, file in repo.files.items()}
    for path, assignments in by_path.items():
        for one in assignments:
            for dotted in _observed_targets(repo.files[path], one.name, observations):
                targets.setdefault(one.call, set()).add(dotted)
    for path, assignments in by_path.items():
        file = repo.files[path]
        for one in assignments:
            dotted_names = targets.get(one.call, set())
            # A name of the repository itself keeps its own import.
            if len(dotted_names) == 1 and (dotted := next(iter(dotted_names))) and repo.resolve(dotted) is None:
                file.runtime_imports[one.name] = file.bindings[one.name] = dotted
                file.top_names.discard(one.name)


def _imported_names(repo: Repo, file: FileModel) -> Iterator[_ImportedName]:
    """The names that a call with literal arguments binds and that the file binds nowhere else."""
    stores = Counter(node.id for node in walk(file.tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
    stores.update(node.arg for node in walk(file.tree) if isinstance(node, ast.arg))
    for statement in file.tree.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not isinstance(call.func, ast.Name) or not values or not all(isinstance(value, ast.Constant) for value in values):
            continue
        function = file.bindings.get(call.func.id) or file.own(call.func.id)
        defined = repo.resolve(function)
        function = f"{defined[0].file.module}.{defined[1]}" if defined else function
        target = statement.targets[0]
        for position, one in enumerate(target.elts) if isinstance(target, ast.Tuple) else [(-1, target)]:
            if function and isinstance(one, ast.Name) and stores[one.id] == 1:
                yield _ImportedName(one.id, (function, ast.unparse(call).partition("(")[2], position))


def _observed_targets(file: FileModel, name: str, observations: Observations) -> Iterator[str]:
    """Dotted names of the classes and functions observed at reads of the name; "" for any other value."""
    observed = observations.get(file.file.path, {})
    reads = [node for node in walk(file.tree) if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)]
    for fact in filter(None, (observed.get(span_of(node, file.lines)) for node in reads)):
        for kind in fact.kinds:
            head, _, dotted = kind.partition(":")
            yield dotted if head in ("class", "function") and "." in dotted else ""
