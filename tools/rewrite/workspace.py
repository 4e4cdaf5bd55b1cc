"""A repository with all that the rewriter knows of it; files are rewritten once, when first needed."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from migrate_agent.tools.rewrite.engine import Rewritten, rewrite_file
from migrate_agent.tools.rewrite.facts import Facts, infer
from migrate_agent.tools.rewrite.randomness import Randomness, analyse
from migrate_agent.tools.rewrite.repo import FileModel, Repo
from migrate_agent.tools.rewrite.symbols import defined_names, global_names
from migrate_agent.tools.types import Inventory, Observations


@dataclass(frozen=True)
class Statement:
    """A top-level statement after rewriting: its text, the names it defines and the global names that it needs."""

    text: str
    defines: tuple[str, ...]
    needs: frozenset[str]
    first_line: int
    last_line: int
    is_import: bool
    is_docstring: bool


class Workspace:
    """Facts, randomness and rewritten files of a repository."""

    def __init__(self, inventory: Inventory, observations: Observations) -> None:
        self.inventory, self.observations = inventory, observations
        self.repo = Repo(inventory)
        self._facts: dict[str, Facts] = {}
        self._rewritten: dict[str, Rewritten] = {}
        self._statements: dict[str, tuple[Statement, ...]] = {}

    def facts(self, path: str) -> Facts:
        """The facts of a file; those of the files it imports come first, so that inherited attributes are known."""
        if path not in self._facts:
            self._facts[path] = Facts()
            file = self.repo.files[path]
            for other in file.file.imports:
                if other in self.repo.files:
                    self.facts(other)
            self._facts[path] = infer(self.repo, file, self.observations.get(path, {}))
        return self._facts[path]

    @cached_property
    def randomness(self) -> Randomness:
        """Which functions need `rngs`."""
        return analyse(self.repo, {path: self.facts(path) for path in self.repo.files})

    def rewritten(self, path: str) -> Rewritten:
        """The file after all rules."""
        if path not in self._rewritten:
            self._rewritten[path] = rewrite_file(self.repo, self.repo.files[path], self.facts(path), self.randomness)
        return self._rewritten[path]

    def statements(self, path: str) -> tuple[Statement, ...]:
        """The file's top-level statements after all rules, in order."""
        if path not in self._statements:
            self._statements[path] = tuple(self._split(self.repo.files[path]))
        return self._statements[path]

    def _split(self, file: FileModel) -> list[Statement]:
        result = self.rewritten(file.file.path)
        found: list[Statement] = []
        for original, nodes, span in zip(_logical(file.tree), result.body, result.spans, strict=True):
            text = "".join(result.header.code_for_node(node) for node in nodes)
            defines = tuple(name for statement in original for name in defined_names(statement))
            first = original[0]
            needs = global_names(text) if text.strip() else frozenset()
            is_import = all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in original)
            docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
            found.append(Statement(text, defines, needs, first.lineno, span.end_line, is_import, docstring and not found))
        return found


def _logical(tree: ast.Module) -> list[list[ast.stmt]]:
    """Statements grouped as libcst groups them: those joined by semicolons on one line are one."""
    groups: list[list[ast.stmt]] = []
    for statement in tree.body:
        compound = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match))
        previous = groups[-1][-1] if groups else None
        if previous is not None and not compound and previous.end_lineno == statement.lineno and not _is_compound(previous):
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return groups


def _is_compound(node: ast.stmt) -> bool:
    return hasattr(node, "body")


_cache: list[tuple[Inventory, Observations, Workspace]] = []


def workspace(inventory: Inventory, observations: Observations) -> Workspace:
    """The workspace of these inputs; the last one is kept, since a run asks for it once a unit."""
    if _cache and _cache[0][0] is inventory and _cache[0][1] is observations:
        return _cache[0][2]
    made = Workspace(inventory, observations)
    _cache[:] = [(inventory, observations, made)]
    return made


def code(node: cst.CSTNode) -> str:
    """The source text of a node."""
    return cst.Module([]).code_for_node(node)


__all__ = ["Mapping", "Statement", "Workspace", "code", "workspace"]
