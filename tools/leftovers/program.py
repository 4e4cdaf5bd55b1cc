"""The definitions of a few files of JAX source: what a name stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from migrate_agent.tools.leftovers.kinds import Kind

Function = ast.FunctionDef | ast.AsyncFunctionDef
MODULES = ("flax.nnx.Module", "nnx.Module", "equinox.Module", "flax.linen.Module")


@dataclass
class File:
    """One file: its tree, and the dotted name of each name that it imports (one that two imports bind differently is left out)."""

    path: str
    tree: ast.Module

    @cached_property
    def imports(self) -> Mapping[str, str]:
        names: dict[str, set[str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    names.setdefault(alias.asname or alias.name.partition(".")[0], set()).add(
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    names.setdefault(alias.asname or alias.name, set()).add(f"{'.' * node.level}{node.module or ''}.{alias.name}")
        return {name: next(iter(dotted)) for name, dotted in names.items() if len(dotted) == 1}

    def dotted(self, node: ast.expr) -> str:
        """The dotted name of `jnp.sum`, imports resolved; "" where it does not start with an import."""
        if isinstance(node, ast.Name):
            return self.imports.get(node.id, "")
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""


@dataclass
class Definition:
    """A top-level function, a class, or a method (`owner` is its class)."""

    file: File
    node: Function | ast.ClassDef
    owner: Definition | None = None

    @property
    def bases(self) -> Sequence[ast.expr]:
        """The bases of a class."""
        return self.node.bases if isinstance(self.node, ast.ClassDef) else ()

    @property
    def methods(self) -> Mapping[str, Function]:
        """The functions in the body of a class."""
        return {one.name: one for one in self.node.body if isinstance(one, Function)}


@dataclass
class Program:
    """Files that are run together. A top-level name counts where one file alone defines it."""

    files: list[File]

    @cached_property
    def definitions(self) -> Mapping[str, Definition]:
        """Top-level name → definition."""
        named: dict[str, list[Definition]] = {}
        for file in self.files:
            for node in file.tree.body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    named.setdefault(node.name, []).append(Definition(file, node))
        return {name: every[0] for name, every in named.items() if len(every) == 1}

    @cached_property
    def attribute_names(self) -> frozenset[str]:
        """Every name that some class of the files has as a method or attribute of its own."""
        names: set[str] = set()
        for file in self.files:
            for node in ast.walk(file.tree):
                if isinstance(node, ast.ClassDef):
                    names |= {one.name for one in node.body if isinstance(one, Function)}
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    names.add(node.attr)
        return frozenset(names)

    def bases(self, definition: Definition) -> Iterator[Definition]:
        """The classes of these files that a class derives from directly."""
        for base in definition.bases:
            kind = self.named(definition.file, base.id) if isinstance(base, ast.Name) else None
            if kind and kind.name == "class":
                yield self.definitions[kind.key]

    def line(self, definition: Definition) -> tuple[Definition, ...]:
        """A class and what it derives from, first bases first."""
        line = [definition]
        while (base := next(self.bases(line[-1]), None)) and base not in line:
            line.append(base)
        return tuple(line)

    def named(self, file: File, name: str) -> Kind | None:
        """What a global name stands for: a function or class of these files."""
        dotted = file.imports.get(name, "")
        definition = self.definitions.get(dotted.rpartition(".")[2] or name)
        if definition is None or (definition.file is not file and not dotted):
            return None
        return Kind("class" if isinstance(definition.node, ast.ClassDef) else "function", key=definition.node.name)

    def derived(self, definition: Definition) -> bool:
        """Whether a class of these files derives from this one."""
        return definition.node.name in self._bases_of_all

    @cached_property
    def _bases_of_all(self) -> frozenset[str]:
        classes = [one for one in self.definitions.values() if isinstance(one.node, ast.ClassDef)]
        return frozenset(base.node.name for one in classes for base in self.bases(one))


def is_module(file: File, node: ast.ClassDef) -> bool:
    """Whether a class derives from a module class of a JAX library directly."""
    return any(file.dotted(base) in MODULES for base in node.bases)
