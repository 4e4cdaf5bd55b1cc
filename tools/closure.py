"""The closure of a class: the top-level statements that it depends on, across files, each with a digest that formatting does not change.

Reads syntax only; nothing is imported. The closure of a class holds the statements that define it, those that define the names that these
read, and so on: other classes, helper functions, constants, tables with what is registered in them, also from other files. A digest says what a statement means:
comments, docstrings, formatting and the order of the file do not matter, and each name counts as what it leads to, so that another import
under the same name is a change. A file that something is taken from counts with what it does when imported (`torch.set_default_dtype`).

Not seen: names made at run time (`importlib`, `setattr` from elsewhere), files that are no Python, and what enters a table of another file under a name
that neither the table nor a function of its file has. A statement that calls `globals`,
`eval` or `exec`, or that uses a module of the repository as a value, depends on all of that file.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from migrate_agent.tools.scan.exports import dotted_text, parse
from migrate_agent.tools.scan.names import Imports, Resolver
from migrate_agent.tools.scan.symbols import defined_names, global_names, is_main, registered_with, registrars
from migrate_agent.tools.scan.walk import SourceError
from migrate_agent.tools.types import SourceFile

DIGITS = 16
"""Hexadecimal digits of a digest: 64 bits, which two statements of one repository do not share by chance."""
WHOLE_FILE = frozenset({"globals", "eval", "exec"})
ENTRY = " of "
"""In the name of what a file puts into a table of another file: `TABLE of pkg/tables.py`."""
_FIXED = (ast.Constant, ast.Tuple, ast.JoinedStr, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Lambda)
"""Expressions whose values take no entries."""
_UNSAID = frozenset({"ctx", "type_comment", "type_ignores", "kind"})
"""Fields of the syntax tree that say nothing about what runs."""


class Name(NamedTuple):
    """A top-level name of a file; "" stands for what importing the file does besides, `TABLE of pkg/tables.py` for what it puts into another one's."""

    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}" if self.name else self.path


@dataclass(frozen=True)
class Closure:
    """`digests`: `path:name` → digest, sorted; a name that is defined nowhere has the digest "". `packages`: top-level names from outside."""

    digests: Mapping[str, str] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()


class Link(NamedTuple):
    """The targets of a name that a statement reads: names of the repository, or a dotted name outside of it."""

    text: str
    inside: tuple[Name, ...] = ()
    outside: str = ""


class Closures:
    """Closures over a set of files, which are parsed when first reached. `sources` maps paths to text, and may raise `SourceError`.

    A table counts with what other files put into it, unless it is asked for without (`entries`). `name_of`: how digests name what a statement reads.
    """

    def __init__(
        self, files: Sequence[SourceFile], sources: Mapping[str, str], entries: bool = True, name_of: Callable[[Name], str] = str
    ) -> None:
        self._entries, self._name_of = entries, name_of
        self._source_files = {file.path: file for file in files}
        self._sources = sources
        self._resolver = Resolver(files, sources)
        self._files: dict[str, _File | None] = {}
        self._resolved: dict[Name, tuple[_Statement, ...]] = {}
        self._entering: dict[Name, tuple[Name, ...]] = {}
        self._texts: dict[str, str] = {}

    def of(self, roots: Iterable[Name], without: Collection[Name] = ()) -> Closure:
        """The closure of these names, themselves included; `without` some names, and what only they need."""
        digests: dict[str, str] = {}
        packages: set[str] = set()
        row, visited = list(roots), set[Name]()
        while row:
            name = row.pop()
            if name in visited or name in without:
                continue
            visited.add(name)
            statements = self._statements(name)
            if statements or name.name:
                digests[str(name)] = _digest(statements, self._name_of)
            for link in (link for statement in statements for link in statement.links):
                packages |= {link.outside.partition(".")[0]} if link.outside else set()
                row += link.inside if name.name else ()
            row += self._entries_elsewhere(name) if statements and self._entries else ()
            # Importing a file runs all of its effects, whichever of its names is used.
            row.append(Name(name.path, ""))
        return Closure(dict(sorted(digests.items())), frozenset(packages - sys.stdlib_module_names))

    def read(self, path: str, text: str) -> tuple[Name, ...]:
        """The names of the repository that `text` reads. It runs in the file's namespace, as an example does."""
        file = self._file(path)
        if file is None:
            return ()
        block = ast.If(ast.Constant(True), parse(text).body or [ast.Pass()], [])
        grown = _File(file.source, ast.Module([*file.tree.body, ast.fix_missing_locations(block)], []), self._resolver, self._tables)
        names = (name for link in self._links(grown, block) for name in link.inside)
        return tuple(dict.fromkeys(name for name in names if name.path != path or name.name in file.definitions))

    def _entries_elsewhere(self, table: Name) -> tuple[Name, ...]:
        """What other files put into a table."""
        if table not in self._entering:
            self._entering[table] = tuple(self._find_entries(table))
        return self._entering[table]

    def _find_entries(self, table: Name) -> Iterator[Name]:
        file = self._file(table.path)
        if file is None or table.name not in file.tables:
            return
        words = {table.name, *(function for function, tables in file.registrars.items() if table.name in tables)}
        for path in self._source_files:
            other = self._file(path) if path != table.path and self._mentions(path, words) else None
            if other is not None and table in other.entries:
                yield _entry(path, table)

    def _mentions(self, path: str, words: Collection[str]) -> bool:
        if path not in self._texts:
            try:
                self._texts[path] = self._sources[path]
            except (SourceError, KeyError):
                self._texts[path] = ""
        return any(word in self._texts[path] for word in words)

    def _tables(self, dotted: str, near: SourceFile) -> frozenset[Name]:
        """The tables of other files that a call of a dotted name changes, or that it is."""
        definition = self._resolver.resolve(dotted, near)
        file = self._file(definition.file.path) if definition and definition.name and definition.file.path != near.path else None
        if definition is None or file is None:
            return frozenset()
        first = definition.name.partition(".")[0]
        return frozenset(Name(file.source.path, name) for name in ({first} & file.tables) | set(file.registrars.get(definition.name, ())))

    def _statements(self, name: Name) -> tuple[_Statement, ...]:
        if name not in self._resolved:
            file = self._file(name.path)
            nodes = [] if file is None else file.named(name.name) if name.name else file.effects
            self._resolved[name] = tuple(_Statement(canonical(node), tuple(self._links(file, node, name.name))) for node in nodes if file)
        return self._resolved[name]

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            try:
                self._files[path] = _File(self._source_files[path], parse(self._sources[path]), self._resolver, self._tables)
            except (SourceError, KeyError):
                self._files[path] = None
        return self._files[path]

    def _links(self, file: _File, statement: ast.stmt, name: str = "") -> Iterator[Link]:
        """What the statement leads to, as what defines `name`."""
        whole = name in file.registered(statement) or ENTRY in name
        for text in sorted(_global_reads(statement if whole else _without_registration(file, statement))):
            root = text.partition(".")[0]
            here = (Name(file.source.path, root),) if root in file.definitions else ()
            yield self._follow(file, text, here)
            if root in WHOLE_FILE and not here:
                yield Link("*", tuple(Name(file.source.path, every) for every in file.definitions))

    def _follow(self, file: _File, text: str, here: tuple[Name, ...]) -> Link:
        dotted = file.imports.dotted(text)
        link = self._resolver.follow(dotted, file.source) if dotted else None
        if link is None:
            return Link(text, here)
        if link.definition is None:
            return Link(text, here, link.elsewhere)
        target = self._file(link.definition.file.path)
        names = [link.definition.name.partition(".")[0]] if link.definition.name else list(target.definitions) if target else []
        return Link(text, tuple(dict.fromkeys((*here, *(Name(link.definition.file.path, name) for name in names)))))


class _Statement(NamedTuple):
    text: str
    links: tuple[Link, ...]


class _File:
    """One parsed file: which statements define a name (or change it in place), and which do something besides."""

    def __init__(
        self, source: SourceFile, tree: ast.Module, resolver: Resolver, tables: Callable[[str, SourceFile], frozenset[Name]]
    ) -> None:
        self.source, self.tree, self._tables = source, tree, tables
        self.imports = Imports(tree, source, resolver)

    @cached_property
    def definitions(self) -> dict[str, list[ast.stmt]]:
        """Name → statements, in the order of the file. Imports define nothing here: they are followed."""
        statements: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            if not isinstance(statement, (ast.Import, ast.ImportFrom)) and not is_main(statement):
                for name in dict.fromkeys((*defined_names(statement), *sorted(self.registered(statement)))):
                    statements.setdefault(name, []).append(statement)
        return statements

    @cached_property
    def effects(self) -> list[ast.stmt]:
        """Statements that define nothing and are neither docstring, import nor the main part of a script."""
        idle = (ast.Import, ast.ImportFrom, ast.Pass)
        open_ones = [s for s in self.tree.body if not isinstance(s, idle) and not is_main(s) and not _is_text(s)]
        return [s for s in open_ones if not defined_names(s) and not self.enters(s)]

    @cached_property
    def entries(self) -> Mapping[Name, Sequence[ast.stmt]]:
        """Tables of other files → the statements that put something into them."""
        statements: dict[Name, list[ast.stmt]] = {}
        for statement in self.tree.body:
            for table in sorted(self._elsewhere(statement)):
                statements.setdefault(table, []).append(statement)
        return statements

    def named(self, name: str) -> Sequence[ast.stmt]:
        """The statements of a name, or of entries (`_entry`)."""
        table, entry, path = name.partition(ENTRY)
        return self.entries.get(Name(path, table), []) if entry else self.definitions.get(name, [])

    def enters(self, statement: ast.stmt) -> bool:
        """Whether running a statement puts something into a table, of whichever file."""
        return bool(self.registered(statement) or self._elsewhere(statement))

    def registered(self, statement: ast.stmt) -> frozenset[str]:
        """The top-level objects of the file that running a statement puts something into."""
        return registered_with(statement, self.objects, self.registrars)

    def _elsewhere(self, statement: ast.stmt) -> frozenset[Name]:
        """The tables of other files that it puts something into."""
        texts = [text for target in _changed(statement) if (text := dotted_text(target))]
        names = [dotted for text in texts if self._leads_out(text) and (dotted := self.imports.dotted(text))]
        return frozenset(table for name in names for table in self._tables(name, self.source))

    def _leads_out(self, text: str) -> bool:
        first = text.partition(".")[0]
        return first in self.imports.names or first not in self.objects

    @cached_property
    def objects(self) -> frozenset[str]:
        """The names that the file assigns."""
        assigned = (s for s in self.tree.body if isinstance(s, (ast.Assign, ast.AnnAssign)))
        return frozenset(name for statement in assigned for name in defined_names(statement))

    @cached_property
    def tables(self) -> frozenset[str]:
        """Those of them that may hold entries."""
        assigned = (s for s in self.tree.body if isinstance(s, (ast.Assign, ast.AnnAssign)) and not isinstance(s.value, _FIXED))
        return frozenset(name for statement in assigned for name in defined_names(statement))

    @cached_property
    def registrars(self) -> Mapping[str, Set[str]]:
        """Functions that put something into top-level objects, with these."""
        return registrars(self.tree.body, self.objects)


def _entry(path: str, table: Name) -> Name:
    """The name of what a file puts into a table of another file."""
    return Name(path, f"{table.name}{ENTRY}{table.path}")


def _changed(statement: ast.stmt) -> Iterator[ast.expr]:
    """What a top-level statement may put something into: what decorates, what is called, and where an element is assigned."""
    match statement:
        case ast.FunctionDef(decorator_list=calls) | ast.AsyncFunctionDef(decorator_list=calls) | ast.ClassDef(decorator_list=calls):
            yield from (call.func if isinstance(call, ast.Call) else call for call in calls)
        case ast.Expr(value=ast.Call(func=function)):
            yield function
        case ast.Assign(targets=[ast.Subscript(value=table)]):
            yield table


def _global_reads(node: ast.stmt) -> set[str]:
    """The names from outside of a statement that it reads, with the attributes that follow: `F.relu`, `Block`, `layers.Mlp`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the user's string escapes
        names = set(global_names(ast.unparse(node)))
    inner = [statement for statement in ast.walk(node) if isinstance(statement, (ast.Import, ast.ImportFrom))]
    names |= {alias.asname or alias.name.partition(".")[0] for statement in inner for alias in statement.names}
    chains = {text for text in _chains(node) if text.partition(".")[0] in names}
    return chains | (names - {text.partition(".")[0] for text in chains} - {"*"})


def _without_registration(file: _File, statement: ast.stmt) -> ast.stmt:
    """The statement without the decorators that put it into a table: it does not depend on what else is in there."""
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or not file.enters(statement):
        return statement
    # A copy: the tree is shared with other closures.
    bare: Any = ast.parse(ast.unparse(statement)).body[0]
    bare.decorator_list = [decorator for decorator in bare.decorator_list if not file.enters(_decorated(decorator))]
    return bare  # type: ignore[no-any-return]


def _decorated(decorator: ast.expr) -> ast.stmt:
    probe: Any = ast.parse("def probe(): pass").body[0]
    probe.decorator_list = [decorator]
    return probe  # type: ignore[no-any-return]


def _chains(node: ast.AST) -> Iterator[str]:
    """The longest chains of attributes on names."""
    if isinstance(node, (ast.Attribute, ast.Name)) and (text := dotted_text(node)):
        yield text
        return
    for child in ast.iter_child_nodes(node):
        yield from _chains(child)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _digest(statements: Sequence[_Statement], name_of: Callable[[Name], str]) -> str:
    if not statements:
        return ""
    text = "\n".join(
        f"{statement.text} {[(link.text, [name_of(name) for name in link.inside], link.outside) for link in statement.links]}"
        for statement in statements
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def canonical(node: Any) -> str:
    """The syntax tree as a text that is the same for every version of Python, without positions and docstrings."""
    if isinstance(node, list):
        return f"[{','.join(map(canonical, node))}]"
    if not isinstance(node, ast.AST):
        return f"{type(node).__name__}:{node!r}"
    parts = []
    for name, value in ast.iter_fields(node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and name == "body" and value and _is_text(value[0]):
            value = value[1:]
        if name not in _UNSAID and value is not None and value != []:
            parts.append(f"{name}={canonical(value)}")
    return f"{type(node).__name__}({','.join(parts)})"
