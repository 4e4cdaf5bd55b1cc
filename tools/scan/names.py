"""Resolves names: in one file (`Imports`), and over the whole repository (`Resolver`). Reads syntax only; nothing is imported.

A *dotted name* is absolute: `torch.nn.functional.relu`, or `pkg.blocks.Block` for a definition of the repository. Text as it stands in a
file becomes a dotted name through the file's `Imports`; a dotted name becomes a file and a qualified name through the `Resolver`:

    resolver = Resolver(inventory.files, sources)            # sources: path → text, e.g. `Sources(root, paths)`; built once per repository
    imports = Imports(ast.parse(text), file, resolver)       # file: the `SourceFile`
    imports.dotted("F.relu")                                 # 'torch.nn.functional.relu'
    imports.dotted("Block")                                  # 'pkg.Block', where the file says `from pkg import Block`
    resolver.resolve("pkg.Block", near=file)                 # RepositoryName(file=<pkg/blocks.py>, name='Block'): re-exports are followed
    resolver.origin("pkg.Block", near=file)                  # 'pkg.blocks.Block'; for names from elsewhere, the name they have there

Scopes inside functions are the caller's business: `Imports` speaks of the file's imports (those in functions included) and top level, so a
caller that knows a name to be a parameter or a local variable does not ask.

What does not stand in the text is not known: `setattr` on modules, `exec`, import hooks. Folders that files add to `sys.path` are known as far as
their text says which (`added_roots`).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from migrate_agent.tools.scan.exports import Exports, bindings, canonical, dotted_text, exports, parse
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.scan.walk import SourceError
from migrate_agent.tools.types import SourceFile

ELSEWHERE = sys.stdlib_module_names | {"torch", "torchaudio", "einops", "numpy", "scipy", "jax", "flax", "optax", "triton"}
"""First names of imports that lead out of a package, whatever its own files are called."""


class Imports:
    """The dotted names of one file's names.

    `names`: local name → dotted name, for all imports of the file, at any depth (the top level goes first). `stars`: modules imported with
    `*`, whose names are known where a `resolver` is given.
    """

    def __init__(self, tree: ast.Module, file: SourceFile, resolver: Resolver | None = None) -> None:
        self.file = file
        self.exports = exports(tree, file)
        self.resolver = resolver
        self.stars = self.exports.stars
        nested = (node for node in walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
        names = {local: dotted for node in nested for local, dotted in bindings(node, file) if local != "*"}
        self.names: Mapping[str, str] = {**names, **self.exports.imports}

    def dotted(self, text: str) -> str | None:
        """`F.relu` → `torch.nn.functional.relu`, `Block` → `pkg.model.Block` where the file defines it; `None` where no import,
        top-level definition or star import of the repository binds the first part."""
        local = self.exports.absolute(text, self.file.module)
        if local is not None:
            return local
        first, dot, rest = text.partition(".")
        if first in self.names:
            return canonical(self.names[first] + dot + rest)
        return self.resolver.through_stars(self.file, text) if self.resolver and self.stars else None

    def of(self, node: ast.expr) -> str | None:
        """The dotted name of a name or attribute chain in the syntax tree; `None` for other expressions."""
        text = dotted_text(node)
        return None if text is None else self.dotted(text)


class RepositoryName(NamedTuple):
    """A definition of the repository: its file, and its qualified name there ("" for the module itself)."""

    file: SourceFile
    name: str

    @property
    def dotted(self) -> str:
        return f"{self.file.module}.{self.name}" if self.name else self.file.module


class Link(NamedTuple):
    """The result of following a dotted name: a `definition`, or the name `elsewhere` outside of the repository. `via` are the files on the way, the last included."""

    definition: RepositoryName | None
    elsewhere: str
    via: tuple[SourceFile, ...]


class Resolver:
    """Dotted names → definitions, over all files of a repository. Files are parsed when first asked about; only their `Exports` are kept.

    `sources` maps paths to text (`Sources` reads them from disk; a file with a syntax error exports nothing, nor does one without text).
    `exports_of` gives the exports of files that were read before.
    """

    def __init__(self, files: Iterable[SourceFile], sources: Mapping[str, str], exports_of: Mapping[str, Exports] | None = None) -> None:
        self._sources = sources
        self._exports: dict[str, Exports] = dict(exports_of or {})
        self._links: dict[tuple[str, str, bool], Link | None] = {}
        self._modules: dict[str, list[SourceFile]] = {}
        self._paths: dict[str, SourceFile] = {}
        for file in files:
            self._modules.setdefault(file.module, []).append(file)
            self._paths[file.path] = file
        self._packaged = frozenset(file.import_root for file in self._paths.values() if file.path.endswith("/__init__.py"))
        self._packages = frozenset(path.rpartition("/")[0] for path in self._paths if path.endswith("/__init__.py"))

    def exports(self, file: SourceFile) -> Exports:
        """What the top level of a file binds (nothing, where it does not parse)."""
        if file.path not in self._exports:
            try:
                self._exports[file.path] = exports(parse(self._sources[file.path]), file)
            except (KeyError, SourceError):
                self._exports[file.path] = Exports()
        return self._exports[file.path]

    def module(self, dotted: str, near: SourceFile | None = None) -> SourceFile | None:
        """The file that `import <dotted>` loads. Several scripts may share a name: `near` is the importing file, whose own import root
        goes first (save for what its program puts before it on `sys.path`), then the folders that its program adds, the repository's root, `src`,
        a root that holds a package, and the importing file's own folder and those above it."""
        files = self._modules.get(dotted, ())
        if near and (leading := self._added(dotted, near.leading_roots)):
            return leading
        if near and (sibling := _at_root(files, near.import_root)):
            return sibling
        if near and (added := self._added(dotted, near.added_roots)):
            return added
        for root in ("", "src"):
            if usual := _at_root(files, root):
                return usual
        packaged = [file for file in files if file.import_root in self._packaged]
        if len(packaged) == 1 or (near is None and len(files) == 1):
            return (packaged or list(files))[0]
        return self._beside(dotted, near) if near else None

    def resolve(self, dotted: str, near: SourceFile | None = None) -> RepositoryName | None:
        """The definition that a dotted name leads to, through imports, re-exports and star imports.

        `None` where it leaves the repository or ends nowhere. The name is followed as far as files know it: `pkg.Block.forward` gives
        `RepositoryName(<pkg/blocks.py>, "Block.forward")`.
        """
        link = self.follow(dotted, near)
        return link.definition if link else None

    def origin(self, dotted: str, near: SourceFile | None = None) -> str | None:
        """The dotted name of what a name leads to, in the repository or outside; aliases (`Linear = nn.Linear`) are followed as well."""
        link = self.follow(dotted, near, aliases=True)
        if link is None:
            return None
        return link.definition.dotted if link.definition else link.elsewhere

    def follow(self, dotted: str, near: SourceFile | None = None, aliases: bool = False) -> Link | None:
        """As `resolve`, with the way there, and where it leaves the repository the name it has outside."""
        key = (dotted, _folder(near), aliases)
        if key not in self._links:
            self._links[key] = None  # a name that leads back to itself leads nowhere
            self._links[key] = self._follow(dotted, near, aliases, frozenset())
        return self._links[key]

    def through_stars(self, file: SourceFile, text: str) -> str | None:
        """The dotted name of text whose first part only a star import of `file` can have bound; the repository's modules go first."""
        link = self._star(file, text.split("."), False, frozenset())
        if link is None:
            return None
        return link.definition.dotted if link.definition else link.elsewhere

    def _beside(self, dotted: str, near: SourceFile) -> SourceFile | None:
        folder = near.path
        while folder:
            folder = folder.rpartition("/")[0]
            # `pkg/torch/` and `pkg/types.py` do not hide torch and types from pkg: nobody imports a package's own files from inside it.
            if folder in self._packages and dotted.partition(".")[0] in ELSEWHERE:
                continue
            if file := self._below(folder, dotted):
                return file
        return None

    def _added(self, dotted: str, folders: Iterable[str]) -> SourceFile | None:
        """The file in one of the folders that a program adds to `sys.path`."""
        if dotted.partition(".")[0] in ELSEWHERE:
            return None
        return next((file for folder in folders if (file := self._below(folder, dotted))), None)

    def _below(self, folder: str, dotted: str) -> SourceFile | None:
        stem = "/".join([*filter(None, [folder]), *dotted.split(".")])
        return self._paths.get(stem + "/__init__.py") or self._paths.get(stem + ".py")

    def _follow(self, dotted: str, near: SourceFile | None, aliases: bool, visited: frozenset[tuple[str, str]]) -> Link | None:
        parts = dotted.split(".")
        inside = False
        for size in range(len(parts), 0, -1):
            file = self.module(".".join(parts[:size]), near)
            if file is None:
                continue
            inside = True
            link = self._member(file, parts[size:], aliases, visited) if parts[size:] else self._whole(file, parts, near, aliases, visited)
            if link is not None:
                return link
        return None if inside else Link(None, canonical(dotted), ())

    def _whole(
        self, file: SourceFile, parts: list[str], near: SourceFile | None, aliases: bool, visited: frozenset[tuple[str, str]]
    ) -> Link | None:
        """A name that is a module, unless its package binds the name to something else (`from .attention import attention`)."""
        package = self.module(".".join(parts[:-1]), near) if len(parts) > 1 else None
        if package is not None and package.path != file.path:
            table = self.exports(package)
            # Importing the module binds it in its package first; what the package's star import of it then copies comes after.
            starred = file.module in table.stars and self.exports(file).exported(parts[-1])
            if starred or table.definitions.get(parts[-1]) or table.imports.get(parts[-1], file.module) != file.module:
                link = self._member(package, parts[-1:], aliases, visited)
                if link is not None:
                    return link
        return Link(RepositoryName(file, ""), "", (file,))

    def _member(self, file: SourceFile, rest: list[str], aliases: bool, visited: frozenset[tuple[str, str]]) -> Link | None:
        """What `rest` means at the top level of `file`."""
        # Two files may import a name from each other; neither defines it.
        if (file.path, rest[0]) in visited:
            return None
        visited = visited | {(file.path, rest[0])}
        table = self.exports(file)
        target = table.absolute(".".join(rest), file.module)
        if target is None:
            link = self._star(file, rest, aliases, visited)
        elif rest[0] in table.imports and table.definitions.get(rest[0]) not in ("class", "function"):
            link = self._follow(target, file, aliases, visited)
        elif aliases and rest[0] in table.aliases:
            link = self._alias(file, table.aliases[rest[0]].split(".") + rest[1:], visited)
            link = link or Link(RepositoryName(file, ".".join(rest)), "", ())
        else:
            link = Link(RepositoryName(file, ".".join(rest)), "", ())
        return link and link._replace(via=tuple(dict.fromkeys((file, *link.via))))

    def _alias(self, file: SourceFile, rest: list[str], visited: frozenset[tuple[str, str]]) -> Link | None:
        return self._member(file, rest, True, visited)

    def _star(self, file: SourceFile, rest: list[str], aliases: bool, visited: frozenset[tuple[str, str]]) -> Link | None:
        outside: list[str] = []
        for star in self.exports(file).stars:
            source = self.module(star, file)
            if source is None:
                outside.append(star)
            elif source.path != file.path and self.exports(source).exported(rest[0]):
                link = self._member(source, rest, aliases, visited)
                if link is not None:
                    return link
        home = _star_home(rest[0], outside)
        return Link(None, canonical(".".join([home, *rest])), ()) if home else None


def _at_root(files: Iterable[SourceFile], root: str) -> SourceFile | None:
    return next((file for file in files if file.import_root == root), None)


def _star_home(name: str, modules: list[str]) -> str | None:
    """Which of the modules imported with `*` from outside has the name: torch's by its spelling, else the only one there is."""
    if name[0].isupper() and "torch.nn" in modules:
        # Layers are the only names that repositories import from torch with `*` in practice.
        return "torch.nn"
    return modules[0] if len(modules) == 1 else None


def _folder(file: SourceFile | None) -> str:
    return "*" if file is None else file.path.rpartition("/")[0]
