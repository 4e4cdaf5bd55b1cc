"""What a unit needs of each file that is imported for it: the definitions, constants and imports, and nothing of the rest of a script.

A file is imported whole where that does nothing but bind names. A script (`scan.scripts`) is imported by these statements alone, and so are
all files where the whole import fails: a package that is not installed is no obstacle where the unit does not need it. The side of the
original does this (`harness.common.partial_import`), when examples are recorded and when they are verified. A mirror holds the same
statements, since the rewriter selects by the same names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from posixpath import relpath
from typing import Any

from migrate_agent.tools.scan.exports import absolute, dotted_text, parse
from migrate_agent.tools.scan.names import Resolver
from migrate_agent.tools.scan.scripts import is_script, trains
from migrate_agent.tools.scan.symbols import defined_names, global_names, is_main, registered_with, registrars
from migrate_agent.tools.scan.visible import visible_from
from migrate_agent.tools.scan.walk import SourceError, Sources
from migrate_agent.tools.types import Example, Inventory, SourceFile, Unit

Import = ast.Import | ast.ImportFrom
AMBIENT = frozenset(
    {"torch.set", "torch.backends", "torch.manual_seed", "torch.library", "torch.use", "torch.random", "sys.path", "warnings"}
)
"""What sets up the program for all that comes after: such statements run though nothing names them."""
LOOKUPS = frozenset({"eval", "globals"})
"""Functions of Python by which code may ask for any name of its file (`eval(f"Encoder{kind}")`)."""
PROBE = "__example__"


@dataclass
class _Part:
    """Of one file: index of a top-level statement → the names that are kept of an import, `None` for any other statement."""

    file: _File
    kept: dict[int, set[str] | None] = field(default_factory=dict)
    visited: set[str] = field(default_factory=set)


Parts = dict[str, dict[str, Any]]
"""File → `{"script": whether it is one, "kept": [[index of a top-level statement, kept names of an import or None], …]}`, as JSON."""
_MOST_FILES = 8
_files: list[tuple[Inventory, _Files]] = []


def needed_parts(inventory: Inventory, unit: Unit, examples: Iterable[Example], root: str = "") -> Parts:
    """What the unit and the texts of these examples need of each file; its path is relative to the folder `root` of the repository."""
    closure = _closure(inventory, unit, examples)
    return {relpath(path, root or "."): _to_json(part) for path, part in closure.parts.items()}


def _closure(inventory: Inventory, unit: Unit, examples: Iterable[Example]) -> _ImportClosure:
    inventory = visible_from(inventory, unit.source)
    # By identity: one inventory is asked about for each of its units.
    files = next((files for known, files in _files if known is inventory), None)
    if files is None:
        files = _Files(inventory)
        _files[:] = [*_files[1 - _MOST_FILES :], (inventory, files)]
    closure = _ImportClosure(files)
    closure.want(unit.source, unit.name.partition(".")[0])
    for example in examples:
        closure.read(unit.source, example)
    return closure


def needed_roots(inventory: Inventory, unit: Unit, examples: Iterable[Example]) -> tuple[str, ...]:
    """The other import roots that a unit needs beside its own, as folders of the repository: `""` for `scripts/net.py` that says
    `from pkg.layers import Block`.

    None where a file at the repository's own root has the name of one beside the unit: no single path leads to both.
    """
    visible = visible_from(inventory, unit.source)
    files = {file.path: file for file in inventory.files}
    hidden = files.keys() - {file.path for file in visible.files}
    closure = _closure(inventory, unit, examples)
    reached = [files[path] for path in closure.parts if path in files]
    reached += [files[path] for file in list(reached) for path in file.imports if path in files and files[path].adopted]
    own = files[unit.source].import_root
    roots = dict.fromkeys(root for root in (*(file.import_root for file in reached), *closure.spelled) if root != own)
    # Names are resolved through added folders before those of other files (`Resolver.module`).
    added = [root for root in files[unit.source].added_roots if root in roots]
    return () if any(not files[path].import_root for path in hidden) else tuple(dict.fromkeys((*added, *roots)))


def first_roots(inventory: Inventory, unit: Unit, examples: Iterable[Example]) -> tuple[str, ...]:
    """The import roots that go before those of other files: the unit's own and those that it needs beside it, where there are any."""
    others = needed_roots(inventory, unit, examples)
    near = next(file for file in inventory.files if file.path == unit.source)
    leading = [root for root in near.leading_roots if root in others]
    return tuple(dict.fromkeys((*leading, near.import_root, *others))) if others else ()


def runs_scripts(parts: Parts) -> bool:
    """Whether one of these files is a script, so that what is kept of it must not grow by another unit's needs."""
    return any(part["script"] for part in parts.values())


def merged_parts(several: Iterable[Parts]) -> Parts:
    """What several units need together."""
    merged: Parts = {}
    for parts in several:
        for path, part in parts.items():
            before = dict(merged[path]["kept"]) if path in merged else {}
            for index, names in part["kept"]:
                before[index] = None if names is None else sorted({*before.get(index, ()), *names})
            merged[path] = {"script": part["script"], "kept": [list(row) for row in sorted(before.items())]}
    return merged


def _to_json(part: _Part) -> dict[str, Any]:
    kept = [[index, None if names is None else sorted(names)] for index, names in sorted(part.kept.items())]
    return {"script": part.file.is_script, "kept": kept}


class _ImportClosure:
    """Selects statements, following imports one file at a time, as Python runs them."""

    def __init__(self, files: _Files) -> None:
        self.parts: dict[str, _Part] = {}
        self.spelled: dict[str, None] = {}
        """The import roots by which import statements spell modules otherwise than the inventory does."""
        self._files = files
        self._resolver = files.resolver

    def part(self, source: SourceFile) -> _Part | None:
        """The part of a file, begun with what runs in any case. `None` for a file that does not parse."""
        if source.path not in self.parts:
            file = self._files.parsed(source.path)
            if file is None:
                return None
            part = self.parts[source.path] = _Part(file)
            for index, statement in enumerate(part.file.tree.body):
                if part.file.is_ambient(statement):
                    self._keep(part, index, "")
            self._packages(source)
        return self.parts[source.path]

    def want(self, path: str, name: str) -> bool:
        """Select what defines a name in a file, and all that this needs. False where nothing does."""
        part = self.part(self._files.by_path[path])
        if part is None:
            return False
        indices = part.file.defining.get(name, ())
        if name in part.visited:
            return bool(indices)
        part.visited.add(name)
        for index in indices:
            self._keep(part, index, name)
        return bool(indices) or self._through_stars(part, name)

    def read(self, path: str, example: Example) -> None:
        """Select what the texts of an example read in the namespace of the unit's file."""
        part = self.part(self._files.by_path[path])
        try:
            tree = parse(f"{example.setup}\n{PROBE}({example.init}\n)\n{PROBE}({example.call}\n)\n")
        except SourceError:
            return
        if part is not None:
            for statement in tree.body:
                self._needs(part, statement)

    def _keep(self, part: _Part, index: int, name: str) -> None:
        statement = part.file.tree.body[index]
        if isinstance(statement, Import):
            names = part.kept.setdefault(index, set())
            assert names is not None
            names.add(name)
            self._follow(part.file.source, statement, name)
        elif index not in part.kept and not trains(statement) and not is_main(statement):
            part.kept[index] = None
            self._needs(part, statement)

    def _needs(self, part: _Part, statement: ast.stmt) -> None:
        """Select what a statement reads: here, and through modules (`layers.Block`) or imports of its own in other files."""
        bare = _read_alone(statement)
        for text in sorted(_reads(statement)):
            root, _, rest = text.partition(".")
            self.want(part.file.source.path, root)
            for dotted in part.file.modules(root):
                self._attribute(part.file.source, dotted, rest)
            if not rest and root in bare:
                for dotted in part.file.modules(root):
                    self._whole(part.file.source, dotted)
        if bare & LOOKUPS:
            self._whole(part.file.source, part.file.source.module)
        for node in ast.walk(statement):
            if isinstance(node, Import):
                for alias in node.names:
                    self._follow(part.file.source, node, alias.asname or alias.name)

    def _whole(self, near: SourceFile, dotted: str) -> None:
        """Select all definitions of a module that is handed on (`register("pure", pure)`, `getattr(layers, name)`): who gets it may ask for any."""
        file = self._resolver.module(dotted, near)
        part = self.part(file) if file is not None else None
        if file is not None and part is not None and not part.file.is_script:
            for name in part.file.defining:
                self.want(file.path, name)

    def _follow(self, near: SourceFile, node: Import, name: str) -> None:
        """Select what an import takes from files of the repository, for the local name that it binds."""
        for alias in node.names:
            local = alias.asname or alias.name
            if isinstance(node, ast.Import):
                if name in (local, alias.name.partition(".")[0]):
                    self._attribute(near, alias.name, "")
            elif local == name and alias.name != "*":
                self._attribute(near, absolute(near, node.level, node.module or ""), alias.name)

    def _attribute(self, near: SourceFile, module: str, rest: str) -> None:
        """Select what `rest` reads from a module: a name of it, or a name of a module below it."""
        if (file := self._resolver.module(module, near)) is not None:
            self.part(file)
            if file.module != module:
                stem = file.path.removesuffix(".py").removesuffix("/__init__")
                self.spelled[stem.removesuffix(module.replace(".", "/")).rstrip("/")] = None
        name, _, further = rest.partition(".")
        if name and not (file and self.want(file.path, name)):
            below = f"{module}.{name}"
            if self._resolver.module(below, near) is not None or further:
                self._attribute(near, below, further)
        elif file and name and further:
            # `from . import layers` in a package makes `pkg.layers.Block` a name of that module.
            for dotted in self.parts[file.path].file.modules(name) if file.path in self.parts else ():
                self._attribute(file, dotted, further)

    def _through_stars(self, part: _Part, name: str) -> bool:
        for index, module in part.file.stars:
            source = self._resolver.module(module, part.file.source)
            # A star from outside of the repository may bind any name.
            if source is None or (self._resolver.exports(source).exported(name) and self.want(source.path, name)):
                kept = part.kept.setdefault(index, set())
                assert kept is not None
                kept.add("*")
                if source is not None:
                    return True
        return False

    def _packages(self, source: SourceFile) -> None:
        """Importing a file runs the `__init__.py` of the packages around it."""
        parts = source.module.split(".")
        for size in range(1, len(parts)):
            if (package := self._resolver.module(".".join(parts[:size]), source)) is not None:
                self.part(package)


class _Files:
    """The repository's own files, each parsed when first reached."""

    def __init__(self, inventory: Inventory) -> None:
        self.by_path = {file.path: file for file in inventory.files if not file.adopted}
        self._sources = Sources(inventory.root, tuple(self.by_path))
        self.resolver = Resolver(self.by_path.values(), self._sources)
        self._parsed: dict[str, _File | None] = {}

    def parsed(self, path: str) -> _File | None:
        """The parsed file; `None` where it does not parse."""
        if path not in self._parsed:
            try:
                self._parsed[path] = _File(self.by_path[path], parse(self._sources[path]))
            except SourceError:
                self._parsed[path] = None
        return self._parsed[path]


class _File:
    """One parsed file, and which of its top-level statements bind which name."""

    def __init__(self, source: SourceFile, tree: ast.Module) -> None:
        self.source, self.tree = source, tree
        self.is_script = is_script(tree)
        self._objects = frozenset(n for s in tree.body if isinstance(s, (ast.Assign, ast.AnnAssign)) for n in defined_names(s))
        self._registrars = registrars(tree.body, self._objects)

    @cached_property
    def defining(self) -> dict[str, list[int]]:
        """Name → indices of the statements that bind it or change what it stands for."""
        indices: dict[str, list[int]] = {}
        for index, statement in enumerate(self.tree.body):
            names = (*defined_names(statement), *registered_with(statement, self._objects, self._registrars))
            for name in dict.fromkeys(names):
                indices.setdefault(name, []).append(index)
        return indices

    @cached_property
    def stars(self) -> Sequence[tuple[int, str]]:
        """(index, dotted module) of each star import."""
        rows = [
            (index, node) for index, node in enumerate(self.tree.body) if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        ]
        return [(index, absolute(self.source, node.level, node.module or "")) for index, node in rows]

    @cached_property
    def _imported(self) -> dict[str, set[str]]:
        names: dict[str, set[str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    names.setdefault(alias.asname or alias.name.partition(".")[0], set()).add(
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                base = absolute(self.source, node.level, node.module or "")
                for alias in node.names:
                    names.setdefault(alias.asname or alias.name, set()).add(f"{base}.{alias.name}" if base else alias.name)
        return names

    def modules(self, name: str) -> Iterable[str]:
        """The dotted names that imports of the file give to a name."""
        return self._imported.get(name, ())

    def is_ambient(self, statement: ast.stmt) -> bool:
        """Whether it sets up the whole program: `torch.set_default_dtype(…)`, `sys.path.append(…)`, `nn.Module.size = …`."""
        target: ast.expr | None = None
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if _seeds(statement.value):
                return False
            target = statement.value.func
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Attribute):
            target = statement.targets[0]
        text = dotted_text(target) if target is not None else None
        root, _, rest = (text or "").partition(".")
        named = [f"{dotted}.{rest}" for dotted in self.modules(root)] if rest else []
        if isinstance(statement, ast.Assign) and named:
            return any(dotted.startswith("torch.") for dotted in named)
        return any(dotted.startswith(prefix) for dotted in named for prefix in AMBIENT)


def _seeds(call: ast.Call) -> bool:
    """Whether a call seeds the generators with what a script computes or parses: `torch.manual_seed(args.seed)`. What needs no such number runs without."""
    names = [node for argument in call.args for node in ast.walk(argument) if isinstance(node, ast.Name)]
    return (dotted_text(call.func) or "").endswith("manual_seed") and bool(names)


def _read_alone(statement: ast.stmt) -> set[str]:
    """The names that a statement reads and of which it takes no attribute."""
    owners = {id(node.value) for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and id(node) not in owners}


def _reads(statement: ast.stmt) -> set[str]:
    """The global names that a statement reads, with the attributes that follow them."""
    names = set(global_names(ast.unparse(statement)))
    chains = {text for node in ast.walk(statement) if isinstance(node, ast.Attribute) and (text := dotted_text(node))}
    return {text for text in chains if text.partition(".")[0] in names} | names
