"""Which other files of the repository run as a program's own code: data sets, trainers and helpers that nothing traces."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from migrate_agent.tools.programs.judge.beside import Beside
from migrate_agent.tools.rewrite.analysis.repo import FileModel, Repo
from migrate_agent.tools.types import Inventory, Observations

Names = frozenset[tuple[str, str]]
"""Paths and names of functions and classes at the top of files."""


class ProgramFiles:
    """The files that the script `source` imports, and what of them is traced: what modules and losses are computed by.

    `units` are the ids of those that the mirror holds, whose functions are traced too (`None`: all). A function that it does not hold, and that nothing
    traced calls, may look at numbers.
    """

    def __init__(
        self, inventory: Inventory, source: str, observations: Observations | None = None, units: Collection[str] | None = None
    ) -> None:
        self.inventory, self.source, self.observations = inventory, source, observations or {}
        self.functions = [unit for unit in inventory.units if unit.kind == "function" and (units is None or unit.id in units)]
        self.repo = Repo(inventory)

    @cached_property
    def reached(self) -> tuple[str, ...]:
        """The script, and the files of the repository that it imports, directly or not."""
        files, todo = dict.fromkeys([self.source]), [self.source]
        while todo:
            for path in self.repo.files[todo.pop()].file.imports:
                model = self.repo.files.get(path)
                if model is not None and path not in files and not model.file.adopted and not model.file.error:
                    files[path] = None
                    todo.append(path)
        return tuple(files)

    def traced(self, started: Collection[tuple[str, str]] = ()) -> Names:
        """What modules, the functions that are units, and `started` (what losses read) are computed by, one calling the other."""
        todo = [(unit.source, unit.name) for unit in self.functions if unit.source in self.reached]
        todo += [pair for pair in started if self._defines(*pair)]
        for path in self.reached:
            for name, model in self.repo.files[path].classes.items():
                if "." not in name and self.repo.is_module_class(model):
                    todo += self._used(path, model.node)
        result: set[tuple[str, str]] = set()
        while todo:
            path, name = todo.pop()
            if (path, name) in result or (node := self._definitions(path).get(name)) is None:
                continue
            result.add((path, name))
            todo += self._used(path, node)
        return frozenset(result)

    def own(self, traced: Names) -> tuple[str, ...]:
        """The files beside the script in which something ran that nothing traces, such as a data set, or in which functions construct modules, which
        the script may call by a name that it is told.
        """
        return tuple(path for path in self.reached if path != self.source and self._is_own(path, self._free(path, traced)))

    def beside(self) -> tuple[Beside, ...]:
        """The files beside the script with functions and classes of which nothing is traced for sure."""
        traced = self.traced()
        rows = [(self.repo.files[path].file, tuple(self._free(path, traced))) for path in self.reached if path != self.source]
        return tuple(Beside(file.path, file.target, names) for file, names in rows if names)

    def resolved(self, path: str, name: str) -> tuple[str, str]:
        """Where a name of a file is defined."""
        file = self.repo.files[path]
        definition = self.repo.resolve(file.bindings.get(name, "")) if name not in file.top_names else None
        return (path, name) if definition is None else (definition[0].file.path, definition[1].partition(".")[0])

    def _used(self, path: str, node: ast.AST) -> Iterator[tuple[str, str]]:
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        for name in names:
            yield self.resolved(path, name)
        for chain in (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)):
            # `losses.dice(x)` after `import losses`.
            module = self.repo.modules.get(self.repo.files[path].bindings.get(chain.value.id, ""))  # type: ignore[attr-defined]
            if module is not None:
                yield module.file.path, chain.attr

    def _defines(self, path: str, name: str) -> bool:
        return path in self.repo.files and name in self._definitions(path)

    def _definitions(self, path: str) -> Mapping[str, ast.stmt]:
        """The functions and the classes that are no modules, at the top of a file."""
        file: FileModel = self.repo.files[path]
        return {
            node.name: node
            for node in file.tree.body
            if isinstance(node, ast.FunctionDef)
            or (isinstance(node, ast.ClassDef) and not self.repo.is_module_class(file.classes[node.name]))
        }

    def _free(self, path: str, traced: Names) -> list[str]:
        return [name for name in self._definitions(path) if (path, name) not in traced]

    def _is_own(self, path: str, free: Collection[str]) -> bool:
        if any(self._runs(path, name) for name in free):
            return True
        trains = any(isinstance(node, ast.Attribute) and node.attr == "backward" for node in ast.walk(self.repo.files[path].tree))
        return not trains and any(self._constructs(path, name) for name in free)

    def _constructs(self, path: str, name: str) -> bool:
        """Whether a function constructs a module of the repository."""
        node = self._definitions(path)[name]
        calls = [one.func.id for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]
        return isinstance(node, ast.FunctionDef) and any(self._is_module(*self.resolved(path, called)) for called in calls)

    def _is_module(self, path: str, name: str) -> bool:
        model = self.repo.files[path].classes.get(name)
        return model is not None and self.repo.is_module_class(model)

    def _runs(self, path: str, name: str) -> bool:
        node = self._definitions(path)[name]
        lines = range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
        return any(span.line in lines for span in self.observations.get(path, ()))
