"""Composes the target files for a set of units: the statements that they need from all files, with
imports and vendored helpers.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from migrate_agent.tools.rewrite.analysis.repo import FileModel, unfollowed
from migrate_agent.tools.rewrite.assemble.class_stubs import UNVERIFIED, stub, stub_reasons, top_class_id
from migrate_agent.tools.rewrite.assemble.formatting import format_python
from migrate_agent.tools.rewrite.assemble.heading import heading
from migrate_agent.tools.rewrite.assemble.idle_methods import Text, holes_by_method, text_with_stubs, unnamed
from migrate_agent.tools.rewrite.assemble.torchax_wrapper import HELPERS
from migrate_agent.tools.rewrite.assemble.translate import Translation, translation
from migrate_agent.tools.rewrite.assemble.workspace import Statement, Workspace, workspace
from migrate_agent.tools.rewrite.specialise import render_specialised
from migrate_agent.tools.rewrite.tables import helpers
from migrate_agent.tools.rewrite.tables.canonical_names import CANONICAL, KNOWN, TORCH
from migrate_agent.tools.scan.scripts import is_script
from migrate_agent.tools.scan.symbols import attribute_chains, global_names, import_lines, import_of, names_in_bodies
from migrate_agent.tools.types import Draft, Example, Hole, Inventory, Observations, Span, Unit


@dataclass
class _Selection:
    """What the target file of one source file holds.

    `statements`: indices of statements. `imports`: index of an import statement → names kept of it.
    `canonical`: names of `CANONICAL`. `vendored` and `qualified`: helpers used by their bare name,
    and as `nnx_layers.name`. `runtime_imports`: names bound at run time. `loaded`: modules to
    import, so that they can be read from their package. `filling`: modules to import since they fill a table that is read here, and `last`
    those of them that import this file themselves. `exports`: names for `__all__`.
    """

    statements: set[int] = field(default_factory=set)
    imports: dict[int, set[str]] = field(default_factory=dict)
    canonical: set[str] = field(default_factory=set)
    vendored: set[str] = field(default_factory=set)
    qualified: set[str] = field(default_factory=set)
    runtime_imports: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    filling: set[str] = field(default_factory=set)
    last: set[str] = field(default_factory=set)
    exports: set[str] = field(default_factory=set)

    def add(self, other: _Selection) -> None:
        """Select what another selection of the same file holds too."""
        for index, names in other.imports.items():
            self.imports.setdefault(index, set()).update(names)
        for name in ("statements", "canonical", "vendored", "qualified", "runtime_imports", "loaded", "filling", "last", "exports"):
            getattr(self, name).update(getattr(other, name))


def compose(
    inventory: Inventory,
    observations: Observations,
    units: Iterable[str],
    overrides: Mapping[str, str] | None = None,
    examples: Sequence[Example] = (),
    refused: Collection[str] = (),
) -> Draft:
    """The target files (relative path → text) that the units with these ids need, and the holes
    left in them.

    `overrides`: unit id → text that replaces its rewritten class. `examples`: the examples that
    will exercise the units; what their texts name is included. `refused`: ids of units that become
    stubs, as do named classes that no example ran. Raises `KeyError` for an unknown unit.
    """
    composers = _composers(inventory, observations, list(units), overrides or {}, refused)
    sources = {unit.id: unit.source for unit in inventory.units}
    known = [example for example in examples if example.unit in sources]
    for composer in composers:
        composer.select([one for one in known if workspace(inventory, observations, sources[one.unit]) is composer.space])
    _share_selections(composers)
    fixed = {name for composer in composers for names in composer.example_helpers.values() for name in names}
    plain = inventory.style == "plain"
    return _joined([composer.compose() for composer in composers], [composer.vendored() for composer in composers], plain, fixed)


def mentions(
    inventory: Inventory, observations: Observations, unit: str, examples: Sequence[Example] = (), refused: Collection[str] = ()
) -> tuple[str, ...]:
    """The ids of the other units whose rewrites are part of the draft of one unit. Stubs do not count."""
    (composer,) = _composers(inventory, observations, [unit], {}, refused)
    composer.select([example for example in examples if example.unit in composer.repo.units])
    return tuple(other.id for other in composer.space.inventory.units if other.id != unit and composer.holds(other))


def _composers(
    inventory: Inventory, observations: Observations, units: list[str], overrides: Mapping[str, str], refused: Collection[str]
) -> list[_Composer]:
    """One for each part of the repository whose files see each other; that of the last unit comes last."""
    spaces: dict[int, Workspace] = {}
    groups: dict[int, list[str]] = {}
    for identifier in reversed(units):
        space = workspace(inventory, observations, inventory.unit(identifier).source)
        spaces[id(space)] = space
        groups.setdefault(id(space), []).insert(0, identifier)
    return [_Composer(spaces[key], overrides, groups[key], refused) for key in reversed(groups)]


def _share_selections(composers: Sequence[_Composer]) -> None:
    """Give composers that hold the same file the same statements of it, since its target is one file."""
    for path in {path for composer in composers for path in composer.selections}:
        holders = [composer for composer in composers if path in composer.selections]
        for composer in holders[:-1]:
            holders[-1].selections[path].add(composer.selections[path])
        for composer in holders[:-1]:
            composer.selections[path] = holders[-1].selections[path]


def _concerns(note: str, path: str, statement: Statement) -> bool:
    """Whether a note of a file is of this statement, or of no line."""
    line = note.removeprefix(f"{path}:").partition(":")[0]
    return not note.startswith(f"{path}:") or not line.isdigit() or statement.first_line <= int(line) <= statement.last_line


def _joined(drafts: Sequence[Draft], vendored: Sequence[Mapping[str, set[str]]], plain: bool, fixed: Collection[str] = ()) -> Draft:
    """One draft of several, in one style; of a file in several of them, the last one's. `fixed`: helpers that the texts of examples call."""
    files: dict[str, str] = {}
    for draft in drafts:
        files |= draft.files
    helpers_of: dict[str, set[str]] = {}
    for names in vendored:
        for target, own in names.items():
            helpers_of.setdefault(target, set()).update(own)
    users = list(files.values())
    files |= {target: render_specialised(names, users, fixed, plain) for target, names in helpers_of.items()}
    holes = sorted({hole for draft in drafts for hole in draft.holes}, key=lambda hole: (hole.source, hole.span))
    notes = dict.fromkeys(note for draft in drafts for note in draft.notes)
    postponed = dict.fromkeys(stub for draft in drafts for stub in draft.postponed)
    # Formatted all at once: each call of ruff costs a process.
    return Draft(format_python(files), tuple(holes), tuple(notes), tuple(postponed))


class _Composer:
    def __init__(self, space: Workspace, overrides: Mapping[str, str], units: list[str], refused: Collection[str]) -> None:
        self.space, self.repo, self.units = space, space.repo, units
        self.overrides = overrides
        self.requested = {top_class_id(identifier) for identifier in units}
        self.postponed = stub_reasons(space.repo, space.observations, space.exercised, units, refused)
        self.refused_functions = {
            unit.id for unit in space.inventory.units if unit.kind == "function" and unit.id in refused and unit.id not in units
        }
        self.selections: dict[str, _Selection] = {}
        self.holes: list[Hole] = []
        self.notes: dict[str, None] = {}
        self.example_helpers: dict[str, set[str]] = {}
        self._mirrored: dict[str, dict[str, str]] = {}
        self._stubs: dict[str, str] = {}
        self._wholes: set[str] = set()
        self._entered: set[tuple[str, str, int]] = set()
        self._examples: list[Example] = []
        self._idle: frozenset[str] = frozenset()

    def select(self, examples: Sequence[Example]) -> None:
        """Select all that the units and the texts of their examples need."""
        self._examples += examples
        for identifier in self.units:
            unit = self.space.inventory.unit(identifier)
            self.want(unit.source, unit.name.partition(".")[0])
            self._reexport(unit.source, unit.name.partition(".")[0])
        for example in examples:
            self._example(translation(self.space, example))
            if example.full:
                self._example(translation(self.space, replace(example, init=example.full)))
        self._module_attributes()

    def holds(self, unit: Unit, stubs: bool = False) -> bool:
        """Whether the class of a unit is selected: as its rewrite, or with `stubs` as a stub."""
        name = unit.name.partition(".")[0]
        return unit.source in self.selections and any(
            name in statement.defines
            and index in self.selections[unit.source].statements
            and self._is_stub(unit.source, statement) == stubs
            for index, statement in enumerate(self.space.statements(unit.source))
        )

    def compose(self) -> Draft:
        """The selected statements as files, without helpers and not formatted."""
        self._idle = unnamed(self._texts(), self._examples)
        files = {self._target(path): self._render(path) for path in sorted(self.selections)}
        for path in list(files):
            files |= {package: "" for package in self._packages(path) if package not in files}
        stubs = tuple(unit.id for unit in self.space.inventory.units if self.holds(unit, stubs=True))
        return Draft(files, tuple(self.holes), tuple(self.notes), stubs)

    def _texts(self) -> Iterator[Text]:
        """The selected statements, and of classes beside the requested units the methods with holes."""
        for path, selection in self.selections.items():
            for index, statement in enumerate(self.space.statements(path)):
                if index in selection.statements:
                    yield Text(self._text(path, statement), self._open_methods(path, statement).keys() - {""})

    def _open_methods(self, path: str, statement: Statement) -> dict[str, list[Hole]]:
        """The holes of a class by method; none of a requested unit, and none where another text stands in the place of the rules'."""
        model = self.repo.files[path].classes.get(statement.defines[0]) if len(statement.defines) == 1 else None
        if model is None or not statement.holes or model.id in self.requested or self._text(path, statement) is not statement.text:
            return {}
        return holes_by_method(model, statement.holes)

    # -- selection --------------------------------------------------------------------------------------------------
    def selection(self, path: str) -> _Selection:
        return self.selections.setdefault(path, _Selection())

    def mirrored(self, path: str) -> Mapping[str, str]:
        """Mirror name (`pkg_jax`) → the name of each package that a file imports by `import pkg`."""
        if path not in self._mirrored:
            self._mirrored[path] = self.repo.mirrored(self.repo.files[path])
        return self._mirrored[path]

    def want(self, path: str, name: str) -> bool:
        """Select the statements that define `name` in a file, and all that they need. False where
        the file does not define it.
        """
        if path not in self.repo.files:
            return False
        selection, defined = self.selection(path), False
        for index, statement in enumerate(self.space.statements(path)):
            if name not in statement.defines:
                continue
            defined = True
            if statement.is_import:
                # The set is the mark that ends the recursion where files import each other.
                if name not in selection.imports.setdefault(index, set()):
                    selection.imports[index].add(name)
                    self._import(path, name)
            elif index not in selection.statements:
                selection.statements.add(index)
                statement = self.space.settle(path, index)
                self._needs(path, self._text(path, statement), statement)
        if defined:
            self._registrations(path, name)
        # Only then through the stars: a definition of the file itself wins.
        if not defined:
            for star in self.repo.files[path].stars:
                # A package may gather dozens of files by stars: only those that lead to the name are rewritten.
                if (other := self.repo.modules.get(star)) and self._leads_to(other, name) and self.want(other.file.path, name):
                    defined = True
                    self._star(path, star)
        return defined

    def _leads_to(self, file: FileModel, name: str) -> bool:
        """Whether a file defines a name, or one does whose names it takes by a star."""
        visited, todo = set[str](), [file]
        while todo:
            one = todo.pop()
            if name in self.space.defined(one.file.path):
                return True
            visited.add(one.file.path)
            others = (self.repo.modules.get(star) for star in one.stars)
            todo += [other for other in others if other is not None and other.file.path not in visited]
        return False

    def _registrations(self, path: str, name: str) -> None:
        """Select the statements that register something in a selected table. One with holes is left
        out, with a note.
        """
        selection = self.selection(path)
        for index, statement in enumerate(self.space.statements(path)):
            if name not in statement.registers or index in selection.statements:
                continue
            statement = self.space.settle(path, index)
            # An entry in a table is optional, so that its hole must not block the unit.
            if reason := self._open(path, statement):
                self.notes[f"{path}:{statement.first_line}: not registered with {name}: {reason}"] = None
                continue
            selection.statements.add(index)
            self._needs(path, self._text(path, statement), statement)

    def _entries(self, path: str, name: str, reader: Statement) -> None:
        """Select what files of the repository put into a table that a statement reads, and import these files for it."""
        file = self.repo.files[path]
        definition = (file, name) if name in file.top_names else self.repo.resolve(file.bindings.get(name, ""))
        if definition is None or name not in names_in_bodies(reader.text) or self.space.enters(path, name, reader):
            return
        for other, index in self.space.entries.get((definition[0].file.path, definition[1]), ()):
            statement = self.space.settle(other, index)
            if other == path or (path, other, index) in self._entered:
                continue
            self._entered.add((path, other, index))
            if reason := self._open(other, statement):
                self.notes[f"{other}:{statement.first_line}: not registered with {name}: {reason}"] = None
                continue
            module, selection = self.repo.files[other].file.target_module, self.selection(self._package_between(other, path) or path)
            (selection.last if self._imports(other, path) else selection.filling).add(module)
            if index not in self.selection(other).statements:
                self.selection(other).statements.add(index)
                self._needs(other, self._text(other, statement), statement)

    def _package_between(self, path: str, wanted: str) -> str:
        """The `__init__.py` beside a file that imports it, by way of which the other file imports it: what the other needs of it is there only at its end."""
        package = posixpath.join(posixpath.dirname(wanted), "__init__.py")
        file = self.repo.files.get(package)
        return package if file is not None and package != wanted and wanted in file.file.imports and self._imports(path, package) else ""

    def _imports(self, path: str, wanted: str) -> bool:
        """Whether importing one file of the repository imports the other."""
        visited, todo = {path}, [path]
        while todo:
            further = {other for other in self.repo.files[todo.pop()].file.imports if other in self.repo.files} - visited
            visited |= further
            todo += further
        return wanted in visited

    def _open(self, path: str, first: Statement) -> str:
        """The reason of the first hole in a statement or in what it would add to the selection; ""
        where there is none.
        """
        visited: set[tuple[str, int]] = set()
        todo = [(path, first)]
        while todo:
            file, statement = todo.pop()
            # A stub has no body left that could need anything.
            if self._is_stub(file, statement):
                continue
            if statement.holes:
                return statement.holes[0].reason
            for name in statement.needs:
                todo += [(source, one) for source, index, one in self._definitions(file, name) if not self._known(source, index, visited)]
        return ""

    def _known(self, path: str, index: int, visited: set[tuple[str, int]]) -> bool:
        skip = (path, index) in visited or (path in self.selections and index in self.selections[path].statements)
        visited.add((path, index))
        return skip

    def _definitions(self, path: str, name: str) -> list[tuple[str, int, Statement]]:
        """The statements that define a name used in a file, there or where it is imported from."""
        if name not in self.repo.files[path].top_names:
            definition = self.repo.resolve(self.repo.files[path].bindings.get(name, ""))
            if definition is None or not definition[1]:
                return []
            path, name = definition[0].file.path, definition[1].partition(".")[0]
        statements = enumerate(self.space.statements(path))
        return [(path, index, one) for index, one in statements if name in one.defines and not one.is_import]

    def _star(self, path: str, star: str) -> None:
        for index, statement in enumerate(self.space.statements(path)):
            if statement.is_import and "*" in statement.defines and star.rpartition(".")[2] in statement.text:
                self.selection(path).imports.setdefault(index, set()).add("*")

    def _text(self, path: str, statement: Statement) -> str:
        for name in statement.defines:
            if (override := self.overrides.get(f"{path}:{name}")) is not None:
                return override
        return self._stub(path, statement) or statement.text

    def _is_stub(self, path: str, statement: Statement) -> bool:
        return bool(self._stub(path, statement)) and f"{path}:{statement.defines[0]}" not in self.overrides

    def _stub(self, path: str, statement: Statement) -> str:
        """The stub of a class that has a reason to be one, or of a refused function with a hole; "" for any other statement."""
        identifier = f"{path}:{statement.defines[0]}" if len(statement.defines) == 1 else ""
        if statement.holes and identifier in self.refused_functions:
            self.postponed.setdefault(identifier, UNVERIFIED)
        if identifier not in self.postponed:
            return ""
        if identifier not in self._stubs:
            self._stubs[identifier] = stub(statement.text, self.postponed[identifier])
        return self._stubs[identifier]

    def _needs(self, path: str, text: str, statement: Statement) -> None:
        needs = statement.needs if text is statement.text else global_names(text)
        if text is not statement.text:  # what runs through torchax is proposed as a text of its own
            self.selection(path).vendored |= needs & HELPERS
            needs -= HELPERS
        for name in sorted(needs):
            self.need(path, name, statement)

    def need(self, path: str, name: str, statement: Statement | None = None) -> None:
        selection, result = self.selection(path), self.space.rewritten(path)
        file = self.repo.files[path]
        name = self.mirrored(path).get(name, name)
        # The order of these cases decides: a name can be a helper, an import and a definition at
        # once.
        if name in result.vendored and name not in file.top_names:
            selection.vendored.add(name)
        elif name == "nnx_layers" and result.qualified:
            selection.qualified |= result.qualified
        elif file.bindings.get(name, "").partition(".")[0] in TORCH and name not in CANONICAL:
            self._leftover(path, name, statement)
        elif (package := self.repo.unfollowed(file, name)) and statement is not None:
            if not any(hole.code == "torch-package" for hole in statement.holes):
                self._hole(path, statement, "torch-package", unfollowed(name, package))
        elif name in file.runtime_imports:
            selection.runtime_imports.add(name)
        # `want` goes first, since a file may define a builtin's name anew.
        elif self.want(path, name) or name in KNOWN:
            if statement is not None:
                self._entries(path, name, statement)
        elif name in CANONICAL:
            selection.canonical.add(name)
        elif statement is not None and self._undefined_before(file, name, statement):
            self.notes[f"{path}:{statement.first_line}: {name} is not defined in the original either"] = None
        elif statement is not None:
            self._hole(path, statement, "undefined-name", f"{name} is not defined at the top of the file")

    def _undefined_before(self, file: FileModel, name: str, statement: Statement) -> bool:
        """Whether the original reads a global of this name, and nothing there defines it: an error
        of its own, on a line that never ran.
        """
        # A star of an unknown module may bind anything.
        if name in file.top_names or name in file.bindings or any(star not in self.repo.modules for star in file.stars):
            return False
        # The rewrite may have added the name; only the original text shows the author's own error.
        return name in global_names("\n".join(file.lines[statement.first_line - 1 : statement.last_line]))

    def _leftover(self, path: str, name: str, statement: Statement | None) -> None:
        if statement is None:
            return
        # A hole explains the leftover already; a second one would only repeat it.
        if not statement.holes:
            self._hole(path, statement, "unknown-op", f"{name} of torch is left over")

    def _hole(self, path: str, statement: Statement, code: str, reason: str) -> None:
        self.holes.append(Hole(path, Span(statement.first_line, 0, statement.last_line, 0), code, reason, ""))

    def _import(self, path: str, name: str) -> None:
        """Follow an import of the repository one step: the imported name must be in the mirror of
        the file it names.
        """
        if (imported := self._imported(path, name)) is None:
            return
        other, own = imported
        self.selection(other.file.path)
        if own:
            self.want(other.file.path, own)

    def _imported(self, path: str, name: str) -> tuple[FileModel, str] | None:
        """The file of the repository that an imported name comes from, and its name there; "" for the file itself."""
        parts = self.repo.files[path].bindings.get(name, "").split(".")
        if package := self.repo.rebinds(".".join(parts)):
            return package, parts[-1]
        # The longest prefix that is a module: `a.b.C` is a name in `a.b`, or in `a` where `b` is a
        # class.
        for cut in range(len(parts), 0, -1):
            if other := self.repo.modules.get(".".join(parts[:cut])):
                return other, ".".join(parts[cut : cut + 1])
        return None

    def _module_attributes(self) -> None:
        """Select what is read from imported modules: `layers.Block` after `from . import layers`."""
        changed = True
        # Selecting a module's attribute may bring in statements that read further modules.
        while changed:
            before = self._size()
            for path in list(self.selections):
                self._attributes_of(path)
            changed = self._size() != before

    def _attributes_of(self, path: str) -> None:
        file, selection = self.repo.files[path], self.selections[path]
        statements = self.space.statements(path)
        spelled = {name: mirror for mirror, name in self.mirrored(path).items()}
        for names in list(selection.imports.values()):
            for name in names:
                other = self.repo.modules.get(file.bindings.get(name, ""))
                if other is None or self.repo.rebinds(other.file.module):
                    continue
                for index in list(selection.statements):
                    for chain in attribute_chains(self._text(path, statements[index]), spelled.get(name, name)):
                        self._follow(other, chain, selection)

    def _follow(self, module: FileModel, chain: Sequence[str], reader: _Selection) -> None:
        """Select what a chain of attributes reads from a module. Submodules that the module does
        not import are loaded for the reader.
        """
        for attribute in chain:
            defined = self.want(module.file.path, attribute)
            below = self.repo.modules.get(module.bindings.get(attribute, "") if defined else f"{module.file.module}.{attribute}")
            if below is None:
                return
            self.selection(below.file.path)
            reader.loaded |= set() if defined else {below.file.target_module}
            module = below
        self._whole(module)

    def _whole(self, module: FileModel) -> None:
        """Select all public names of a module that is looked at by strings: `getattr(layers, name)`. One with holes is left out, with a
        note.
        """
        path = module.file.path
        if path in self._wholes:
            return
        self._wholes.add(path)
        for name in self._public_names(module):
            found = self._definitions(path, name)
            if reason := next((reason for source, _, one in found if (reason := self._open(source, one))), ""):
                self.notes[f"{path}: {name} is not migrated: {reason}"] = None
                continue
            self.want(path, name)
            if below := self.repo.modules.get(module.bindings.get(name, "")):
                self._whole(below)

    def _public_names(self, module: FileModel) -> list[str]:
        """Names without an underscore that a module has of the repository."""
        imported = {name for name in module.bindings if self._imported(module.file.path, name)}
        return sorted(name for name in module.top_names | imported if not name.startswith("_"))

    def _size(self) -> int:
        return sum(len(s.statements) + sum(map(len, s.imports.values())) for s in self.selections.values()) + len(self.selections)

    def _reexport(self, path: str, name: str) -> None:
        """Re-export a unit from the mirror's `__init__.py` where the package's re-exports it."""
        dotted = f"{self.repo.files[path].file.module}.{name}"
        for file in self.repo.files.values():
            if not file.file.path.endswith("__init__.py") or not path.startswith(str(PurePosixPath(file.file.path).parent) + "/"):
                continue
            for bound, target in file.bindings.items():
                if (
                    # A private name is no part of the package's interface.
                    not bound.startswith("_")
                    and target.rpartition(".")[2] == name
                    and self._same(target, dotted)
                    and not self._by_star(file, bound)
                ):
                    self.want(file.file.path, bound)
                    self.selection(file.file.path).exports.add(bound)

    def _by_star(self, file: FileModel, bound: str) -> bool:
        return not any(bound in statement.defines for statement in self.space.statements(file.file.path))

    def _same(self, target: str, dotted: str) -> bool:
        definition = self.repo.resolve(target)
        return bool(definition and f"{definition[0].file.module}.{definition[1]}" == dotted)

    def _example(self, translated: Translation) -> None:
        for path, name in translated.wanted:
            self.need(path, name)
        self.example_helpers.setdefault(translated.path, set()).update(translated.vendored)
        self.holes += list(translated.holes)

    # -- output -----------------------------------------------------------------------------------------------------
    def _target(self, path: str) -> str:
        return self.repo.files[path].file.target

    def _packages(self, target: str) -> list[str]:
        """The `__init__.py` files that the mirror of a package needs."""
        source = next((f.file for f in self.repo.files.values() if f.file.target == target), None)
        if source is None:
            return []
        packages = []
        original, mirror = PurePosixPath(source.path).parent, PurePosixPath(target).parent
        # What lies above the import root is no part of the mirror, whether it is a package or not.
        while original not in (PurePosixPath(source.import_root), PurePosixPath(".")):
            # A namespace package has no `__init__.py`, and its mirror must have none either.
            if str(original / "__init__.py") not in self.repo.files and not (self.space.inventory.root / original / "__init__.py").exists():
                break
            packages.append(str(mirror / "__init__.py"))
            original, mirror = original.parent, mirror.parent
        return packages

    def _render(self, path: str) -> str:
        file, selection = self.repo.files[path], self.selections[path]
        statements = self.space.statements(path)
        docstring, future = "", ""
        imports: list[str] = []
        body: list[str] = []
        for index, statement in enumerate(statements):
            if statement.is_docstring:
                docstring = statement.text.strip()
            elif statement.is_import:
                # It has to stand before all other imports.
                if "__future__" in statement.text:
                    future = statement.text.strip()
                elif names := selection.imports.get(index):
                    lines = import_lines(statement.text, names | {m for m, name in self.mirrored(path).items() if name in names})
                    # What it imports may read from this file what stands above.
                    if body and any(name == "*" or self._imported(path, name) for name in names):
                        body.append("".join(f"{line}\n" for line in lines))
                    else:
                        imports += lines
            elif index in selection.statements:
                idle = {name: holes[0] for name, holes in self._idle_of(path, statement).items()}
                body.append(text_with_stubs(self._text(path, statement), idle) if idle else self._text(path, statement))
                self._note_holes(path, statement)
        if body and is_script(file.tree):
            self.notes[f"{path} is a script: what the units need of it is carried, and nothing that it does"] = None
        if file.file.adopted and body:
            self.notes[f"{file.file.target} is rewritten from {file.file.adopted}: keep its licence with it"] = None
        imports += [CANONICAL[name] for name in sorted(selection.canonical)]
        imports += [f"import {name}" for name in sorted(selection.loaded)]
        imports += [import_of(name, file.runtime_imports[name]) for name in sorted(selection.runtime_imports)]
        imports += self._vendored_imports(file, selection)
        exports = f"\n\n__all__ = {sorted(selection.exports)!r}\n" if selection.exports else ""
        imports += [f"import {name}  # noqa: F401 (for what it registers)" for name in sorted(selection.filling)]
        last = "".join(f"\n\nimport {name}  # noqa: E402, F401 (for what it registers)" for name in sorted(selection.last))
        parts = [docstring, future, "\n".join(dict.fromkeys(imports)), "".join(body).strip("\n") + last + exports]
        if any(parts):
            parts.insert(0, heading(self.space.rewritten(path).header, 0 in selection.statements))
        return "\n\n".join(part for part in parts if part) + "\n"

    def _idle_of(self, path: str, statement: Statement) -> dict[str, list[Hole]]:
        """The methods of a class that become stubs, since nothing in the draft names them, with their holes."""
        return {name: holes for name, holes in self._open_methods(path, statement).items() if name in self._idle}

    def _note_holes(self, path: str, statement: Statement) -> None:
        if self._is_stub(path, statement):
            name = statement.defines[0]
            once = "it is called" if name in self.repo.files[path].functions else "one is made"
            note = f"{path}:{statement.first_line}: {name} is not migrated, an error once {once}: {self.postponed[f'{path}:{name}']}"
            self.notes[note] = None
        # Holes belong to the text of the rules; an override or a stub has taken its place.
        if self._text(path, statement) is not statement.text:
            return
        idle = self._idle_of(path, statement)
        self.holes += [hole for hole in statement.holes if not any(hole in holes for holes in idle.values())]
        for name, holes in idle.items():
            reason = f"{statement.defines[0]}.{name} is not migrated, an error once it is called: {holes[0].reason}"
            self.notes[f"{path}:{holes[0].span.line}: {reason}"] = None
        # Those of a file are of all its statements, most of which stay behind in a script.
        script = is_script(self.repo.files[path].tree)
        of_file = [note for note in self.space.rewritten(path).notes if not script or _concerns(note, path, statement)]
        self.notes |= dict.fromkeys([*statement.notes, *of_file])

    def _vendored_imports(self, file: FileModel, selection: _Selection) -> list[str]:
        if not selection.vendored and not selection.qualified:
            return []
        package, module = self._helpers_of(file)
        lines = []
        if selection.vendored:
            within = f"{package}." if package.strip(".") else package
            lines.append(f"from {within}{module} import {', '.join(sorted(selection.vendored))}")
        if selection.qualified:
            lines.append(f"from {package} import {module}" if package else f"import {module} as nnx_layers")
        return lines

    def _helpers_of(self, file: FileModel) -> tuple[str, str]:
        """Package and module of the helpers, as a file's mirror imports them."""
        return helpers.module_of(file.file)

    def vendored(self) -> dict[str, set[str]]:
        """Target file of helpers → their names."""
        by_target: dict[str, set[str]] = {}
        for path in sorted({*self.selections, *self.example_helpers}):
            selection = self.selections.get(path, _Selection())
            names = selection.vendored | selection.qualified | self.example_helpers.get(path, set())
            if names:
                by_target.setdefault(helpers.file_of(self.repo.files[path].file), set()).update(names)
        for together in self._imported_together():
            names = set().union(*(by_target.get(target, set()) for target in together))
            by_target |= {target: set(names) for target in together if target in by_target}
        return by_target

    def _imported_together(self) -> list[set[str]]:
        """Helper files beside top-level files of several import roots that import each other. All have one name, so that whichever is
        imported first must have what all of them need."""
        groups: list[set[str]] = []
        for path in sorted(self.selections):
            file = self.repo.files[path].file
            reached = [self.repo.files[other].file for other in file.imports if other in self.repo.files]
            targets = {target for one in (file, *reached) if helpers.is_beside(target := helpers.file_of(one))}
            joined = [group for group in groups if group & targets]
            groups = [*(group for group in groups if group not in joined), targets.union(*joined)]
        return [group for group in groups if len(group) > 1]
