"""The import root, module name and mirror path of each file.

A file with a chain of `__init__.py` above it is imported from the folder that holds the topmost package; any other file is a script,
imported from its own folder. Where the repository's own import statements say otherwise (namespace packages: `from lib.models import net`
in a folder without `__init__.py`; relative imports), the majority of them decides, for all files of that folder together. What a library imports
must resolve for all who use it, so that statements of files that others import go before those of scripts. A folder of scripts stays one in spite of
its `__init__.py` where those that run (`if __name__ == "__main__"`) import others of it by their own names, and nothing imports it as a package;
so does one whose files others find by their own names alone, wherever these stand: such folders are put on `PYTHONPATH` by who runs them.
Folders that a file puts on `sys.path` itself count for what it imports, for what it is imported by, and for all that those import; what is found
through them alone says of its root what nothing else does. So do those that a shell script puts on `PYTHONPATH` (`shell_paths`), for imports
that lead nowhere otherwise.

Mirror: `pkg/a/b.py` → `pkg_jax/a/b.py`, `src/pkg` → `src/pkg_jax`, `model.py` → `model_jax.py`,
`scripts/model.py` → `scripts/model_jax.py`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from migrate_agent.tools.scan.added_roots import AddedRoots, added_roots
from migrate_agent.tools.scan.names import ELSEWHERE
from migrate_agent.tools.scan.shell_paths import PathLists
from migrate_agent.tools.scan.walk import SourceError
from migrate_agent.tools.types import SourceFile

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)[ \t]*(?P<module>[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#]*)"
    r"|import[ \t]+(?P<plain>[^\n#]*))",
    re.M,
)
_ROUNDS = 2
_MAIN = re.compile(r"^if[ \t(]+__name__[ \t]*==", re.M)
_TORCH = re.compile(r"^[ \t]*(?:from|import)[ \t]+torch\b", re.M)


class Statement(NamedTuple):
    """One imported thing: the level of the relative import (0: absolute), and the dotted names (below that level) it may mean, longest first."""

    level: int
    dotted: tuple[str, ...]
    name: str = ""
    """What `from module import name` asks for, the last part of the longest name."""


def layout(paths: Iterable[str], sources: Mapping[str, str], path_lists: PathLists = ()) -> tuple[SourceFile, ...]:
    """A `SourceFile` for each path, with module, target and (by a quick look at the text) `uses_torch`.

    `sources` maps paths to text; a file whose look-up raises `SourceError` is laid out all the same. `path_lists` are those of `shell_paths`.
    """
    listed = tuple(paths)
    texts = dict(_readable(listed, sources))
    folders = _Folders(listed, texts)
    adding = {path: added for path, text in texts.items() if any(added := added_roots(path, text, folders.all))}
    shared, rows = _settled(folders, texts, adding)
    if path_lists and (by_shell := folders.by_shell(texts, shared, path_lists)):
        adding |= {path: AddedRoots(adding.get(path, AddedRoots()).before, after) for path, after in by_shell.items()}
        shared, rows = _settled(folders, texts, adding)
    torch = {path for path, text in texts.items() if _TORCH.search(text)}
    voting = [row for row in rows if row.votes]
    plain = [row for row in voting if not row.is_added]
    imported = {row.imported for row in plain}
    votes = {**_votes(voting), **_votes(plain), **_votes(row for row in plain if row.importer in imported)}
    roots = {package: _majority_root(package, counts) for package, counts in votes.items()}
    files = (_source_file(path, _voted_root(folders.root(path), roots), path in torch) for path in listed)
    return tuple(_with_added(file, shared.get(file.path, AddedRoots())) for file in files)


def mirror_layout(paths: Iterable[str], sources: Mapping[str, str], files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    """The layout of a mirror of these files, which finds the mirrors of what they import under the import roots that these have."""
    by_path = {file.path: file for file in files}
    originals = {file.target: file for file in by_path.values()}
    rows = []
    for row in layout(paths, sources):
        if (original := originals.get(row.path)) is not None:
            import_roots = [original.import_root, *(by_path[path].import_root for path in original.imports if path in by_path)]
            row = _with_added(
                row, AddedRoots(original.leading_roots, tuple(dict.fromkeys((*original.added_roots, *row.added_roots, *import_roots))))
            )
        rows.append(row)
    return tuple(rows)


def _settled(
    folders: _Folders, texts: Mapping[str, str], adding: Mapping[str, AddedRoots]
) -> tuple[Mapping[str, AddedRoots], list[Evidence]]:
    """The folders that each file finds on `sys.path`, and what the imports say then."""
    shared = adding
    rows = folders.evidence(texts, shared)
    # What one file adds, others find modules by, which lead to further files.
    for _ in range(_ROUNDS if adding else 0):
        shared = _shared(adding, rows)
        rows = folders.evidence(texts, shared)
    return shared, rows


def _shared(adding: Mapping[str, AddedRoots], rows: Iterable[Evidence]) -> dict[str, AddedRoots]:
    """The folders that each file finds on `sys.path`: its own come first, then those that other files of the same programs add."""
    imports: dict[str, set[str]] = {}
    importers: dict[str, set[str]] = {}
    for row in rows:
        imports.setdefault(row.importer, set()).add(row.imported)
        importers.setdefault(row.imported, set()).add(row.importer)
    shared = dict(adding)
    for path in sorted(adding):
        for other in sorted(_reached(_reached({path}, importers), imports) - {path}):
            before, after = shared.get(other, AddedRoots())
            after = tuple(
                dict.fromkeys((*after, *(folder for folder in (*adding[path].before, *adding[path].after) if folder not in before)))
            )
            shared[other] = AddedRoots(before, after)
    return shared


def _reached(starts: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    reached = set(starts)
    open_ones = list(reached)
    while open_ones:
        neighbours = set(edges.get(open_ones.pop(), ())) - reached
        reached |= neighbours
        open_ones += neighbours
    return reached


def _with_added(file: SourceFile, added: AddedRoots) -> SourceFile:
    after = tuple(folder for folder in added.after if folder != file.import_root)
    return replace(file, leading_roots=added.before, added_roots=after) if any(added) else file


def _readable(paths: Iterable[str], sources: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        try:
            yield path, sources[path]
        except SourceError:
            continue


def _votes(rows: Iterable[Evidence]) -> dict[str, Counter[str]]:
    votes: dict[str, Counter[str]] = {}
    for row in rows:
        votes.setdefault(row.default, Counter())[row.root] += 1
    return votes


def _majority_root(root: str, counts: Counter[str]) -> str:
    best, number = counts.most_common(1)[0]
    # On a tie the `__init__.py` chain decides: import statements of scripts may be wrong.
    return root if counts[root] == number else best


def _voted_root(root: str, roots: Mapping[str, str]) -> str:
    return roots.get(root, root)


def _source_file(path: str, root: str, uses_torch: bool) -> SourceFile:
    below = path[len(root) + 1 :] if root else path
    parts = below.removesuffix(".py").split("/")
    if len(parts) > 1 and parts[-1] == "__init__":
        module, mirror = parts[:-1], [parts[0] + "_jax", *parts[1:-1]]
        target = [*mirror, "__init__"]
    else:
        module = parts
        mirror = target = [parts[0] + "_jax", *parts[1:]]
    return SourceFile(
        path=path,
        module=".".join(module),
        target="/".join([*([root] if root else []), *target]) + ".py",
        target_module=".".join(mirror),
        uses_torch=uses_torch,
        import_root=root,
    )


class Evidence(NamedTuple):
    """What an import statement says of one file: the root it has by default, and the root it is imported from here."""

    importer: str
    imported: str
    default: str
    root: str
    votes: bool = True
    """Whether that root can be the file's."""
    is_added: bool = False
    """Whether it is found only in a folder that a file puts on `sys.path`."""


class _Folders:
    """The folders of a repository, and the import roots that its import statements imply."""

    def __init__(self, paths: Iterable[str], texts: Mapping[str, str]) -> None:
        self.paths = frozenset(paths)
        self.texts = texts
        self.all = frozenset(folder for path in self.paths for folder in _ancestors(path))
        self.by_name: dict[str, list[str]] = {}
        for path in self.paths:
            self.by_name.setdefault(path.rpartition("/")[2], []).append(path)
        self.packages = frozenset(_parent(path) for path in self.paths if path.endswith("/__init__.py"))
        self.names = frozenset(name for path in self.paths for name in path.removesuffix(".py").split("/"))
        uses = {use for path, text in texts.items() for use in self._uses(path, text)}
        self.packages -= {folder for folder, as_package in uses if not as_package and (folder, True) not in uses}

    def _uses(self, path: str, text: str) -> Iterator[tuple[str, bool]]:
        """The folders with an `__init__.py` that import statements of a file go through as packages (True), or start from as scripts in them do."""
        for statement in statements(text):
            if statement.level:
                folders = [folder for folder, _ in zip(_ancestors(path), range(statement.level), strict=False)]
                yield from ((folder, True) for folder in folders if folder in self.packages)
            elif (top := statement.dotted[0].split(".")[0]) in self.names and top not in sys.stdlib_module_names:
                yield from self._starts(path, text, statement)

    def _starts(self, path: str, text: str, statement: Statement) -> Iterator[tuple[str, bool]]:
        for root, file_path in self._resolved([*_ancestors(path)], statement):
            between = [folder for folder in _ancestors(file_path) if folder.startswith(f"{root}/" if root else "") and folder != root]
            yield from ((folder, True) for folder in between if folder in self.packages)
            runs = _MAIN.search(text) or self._defines(file_path, statement.name)
            if root == _parent(path) and root in self.packages and file_path != path and runs:
                yield root, False
            return
        if (elsewhere := self._elsewhere(statement)) and _parent(elsewhere) in self.packages:
            yield _parent(elsewhere), False

    def _elsewhere(self, statement: Statement) -> str:
        """The one file of the repository that `from module import name` can mean by a module's own name, wherever it lies; else nothing."""
        module = statement.dotted[-1]
        if not statement.name or len(statement.dotted) != 2:
            return ""
        meant = [path for path in self.by_name.get(f"{module}.py", ()) if self._defines(path, statement.name)]
        return meant[0] if len(meant) == 1 else ""

    def _defines(self, path: str, name: str) -> bool:
        """Whether a file defines a name at its top, by a quick look at its text."""
        return bool(name) and bool(
            re.search(rf"^(?:(?:async +)?def|class)[ \t]+{name}\b|^{name}\b[^=\n(]*=", self.texts.get(path, ""), re.M)
        )

    def _lacks(self, path: str, name: str) -> bool:
        """Whether a package's own file can hold no such name: it neither mentions it nor takes names that it does not spell."""
        text = self.texts.get(path)
        return (
            bool(name)
            and path.endswith("/__init__.py")
            and text is not None
            and not re.search(rf"\b{name}\b|\*|\b__\w+__\b|setattr|globals", text)
        )

    def root(self, path: str) -> str:
        """The folder from which a file is imported, as its `__init__.py` chain has it. The repository's own root is never a package."""
        folder = _parent(path)
        while folder in self.packages:
            folder = _parent(folder)
        return folder

    def evidence(self, texts: Mapping[str, str], added: Mapping[str, AddedRoots]) -> list[Evidence]:
        """What each import of a file of the repository says of that file's root, with the folders that are `added` for the importing file."""
        return [row for path, text in texts.items() for row in self._evidence(path, text, added.get(path, AddedRoots()))]

    def _evidence(self, path: str, text: str, added: AddedRoots) -> Iterator[Evidence]:
        for statement in statements(text):
            if statement.level:
                yield from self._relative(path, statement)
            elif statement.dotted[0].split(".")[0] in self.names:
                yield from self._absolute(path, statement, added)

    def _relative(self, path: str, statement: Statement) -> Iterator[Evidence]:
        package = path
        for _ in range(statement.level):
            if not package:
                return
            package = _parent(package)
        default = self.root(path)
        if package:
            # Relative imports say the same of the importing file, wherever they lead.
            votes = default == package or default.startswith(package + "/")
            imported = self._file(package, statement.dotted) or path
            yield Evidence(path, imported, default, _parent(package), votes)
            # A folder without `__init__.py` inside of a package is a part of it: `from .layers.linear import Linear`.
            if (inner := self.root(imported)).startswith(package + "/") and inner != default:
                yield Evidence(path, imported, inner, _parent(package) if votes else default)

    def _file(self, folder: str, dotted: tuple[str, ...]) -> str | None:
        """The file that the longest of these names leads to from a folder."""
        for name in dotted:
            stem = "/".join([*([folder] if folder else []), *name.split(".")])
            for file in (stem + ".py", stem + "/__init__.py"):
                if file in self.paths:
                    return file
        return None

    def _resolved(self, roots: Sequence[str], statement: Statement) -> Iterator[tuple[str, str]]:
        """The folders in which one of these names leads to a file, and that file: by the longest name first, since `utils.constants` beside
        `utils/utils.py` means no part of that file; of a name, the innermost folder first. A package that lacks what is asked for is not meant."""
        for index, name in enumerate(statement.dotted):
            for root in roots:
                file_path = self._file(root, (name,))
                if file_path is not None and not (index and self._lacks(file_path, statement.name)):
                    yield root, file_path

    def by_shell(self, texts: Mapping[str, str], added: Mapping[str, AddedRoots], path_lists: PathLists) -> dict[str, tuple[str, ...]]:
        """The folders after its own of each file with an import that leads nowhere but through lists of folders that all find the same file."""
        found: dict[str, tuple[str, ...]] = {}
        for path, text in texts.items():
            own = added.get(path, AddedRoots())
            folders = {
                folder: None
                for statement in statements(text)
                if not statement.level and statement.dotted[0].split(".")[0] in self.names and not any(self._absolute(path, statement, own))
                if (folder := self._through(path_lists, path, statement)) is not None
            }
            if folders:
                found[path] = tuple(dict.fromkeys((*own.after, *folders)))
        return found

    def _through(self, path_lists: PathLists, path: str, statement: Statement) -> str | None:
        if statement.dotted[0].split(".")[0] in ELSEWHERE:
            return None
        places = {next(((root, file) for root, file in self._resolved(roots, statement) if file != path), None) for roots in path_lists}
        places -= {None}
        # Scripts of several projects may each have their own.
        place = places.pop() if len(places) == 1 else None
        return place[0] if place is not None and self._holds(place[1], statement) else None

    def _holds(self, path: str, statement: Statement) -> bool:
        """Whether a file has what the import asks of it: a package from elsewhere may have the name of a folder here."""
        asks = statement.name and not path.removesuffix("/__init__.py").removesuffix(".py").endswith(statement.dotted[0].replace(".", "/"))
        return not asks or bool(re.search(rf"\b{statement.name}\b|^[ \t]*from\b.*\bimport[ \t]*\*", self.texts.get(path, ""), re.M))

    def _absolute(self, path: str, statement: Statement, added: AddedRoots) -> Iterator[Evidence]:
        usual = [*_ancestors(path), "src"]
        added_folders = [] if statement.dotted[0].split(".")[0] in sys.stdlib_module_names else [*added.before, *added.after]
        for is_added, roots in ((False, usual), (True, added_folders)):
            for root, file_path in self._resolved(roots, statement):
                if file_path != path:
                    default = self.root(file_path)
                    votes = default == root or not root or default.startswith(root + "/")
                    yield Evidence(path, file_path, default, root, votes, is_added)
                    return


def statements(text: str) -> Iterator[Statement]:
    """The import statements of a text, those inside functions and blocks too. A regular expression: parsing every file would be slow."""
    for match in _IMPORT.finditer(text):
        if match["plain"] is not None:
            for name in match["plain"].split(","):
                if words := name.split():
                    yield Statement(0, _prefixes(words[0]))
        elif match["dots"] or match["module"]:
            names = [words[0] for name in match["names"].strip("() ").split(",") if (words := name.split())]
            for name in names or [""]:
                dotted = ".".join(part for part in (match["module"], name if name.isidentifier() else "") if part)
                yield Statement(
                    len(match["dots"]), _prefixes(dotted) if dotted else (), name if match["module"] and name.isidentifier() else ""
                )


def _prefixes(dotted: str) -> tuple[str, ...]:
    parts = dotted.split(".")
    return tuple(".".join(parts[:size]) for size in range(len(parts), 0, -1))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _ancestors(path: str) -> Iterator[str]:
    while path:
        path = _parent(path)
        yield path
