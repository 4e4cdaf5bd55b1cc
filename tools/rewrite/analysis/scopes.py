"""The names that a file binds, by scope, so that no helper is imported under one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import cached_property

from migrate_agent.tools.rewrite.analysis.repo import FileModel
from migrate_agent.tools.scan.nodes import walk


class Scopes:
    """The names of one file."""

    def __init__(self, file: FileModel) -> None:
        self.file = file
        self._seen: dict[tuple[str, ...], frozenset[str]] = {}

    @cached_property
    def taken(self) -> frozenset[str]:
        """Every name that the file binds anywhere."""
        return self._global | self._bound(walk(self.file.tree))

    def visible(self, path: Sequence[str]) -> frozenset[str]:
        """The names visible in the body of a qualified name: those of the module and of the
        functions around it.

        Outside of functions these are all names of the file.
        """
        key = tuple(path)
        if key not in self._seen:
            around = [".".join(key[: i + 1]) for i in range(len(key))]
            functions = [self.file.functions[name] for name in around if name in self.file.functions]
            inner = self._bound(node for function in functions for node in walk(function))
            self._seen[key] = self._outer | inner if functions else self.taken
        return self._seen[key]

    @cached_property
    def _global(self) -> frozenset[str]:
        # Imports of torch go, so that their names are free for helpers.
        torch = ("torch", "einops.layers.torch")
        names = (name for name, dotted in self.file.bindings.items() if not f"{dotted}.".startswith(tuple(f"{root}." for root in torch)))
        return frozenset({*self.file.top_names, *names})

    @cached_property
    def _outer(self) -> frozenset[str]:
        """The names bound outside of functions."""
        inside = {id(child) for function in self.file.functions.values() for child in walk(function)}
        return self._global | self._bound(node for node in walk(self.file.tree) if id(node) not in inside)

    def _bound(self, nodes: Iterable[ast.AST]) -> frozenset[str]:
        names: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in self.file.runtime_imports:
                names.add(node.id)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in self.file.top_names:
                names.add(node.name)
        return frozenset(names)
