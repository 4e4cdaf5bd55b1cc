"""Counts which statements and branches of the user's functions run, on either side of the sandbox. Standard library only.

Each place gets a call of `set.add` when its file is imported, so that running it costs about 40 ns, and other code nothing. Source positions
and files stay valid. Only places inside functions count: what importing a file runs, it always runs.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache
from importlib.abc import MetaPathFinder
from importlib.util import decode_source
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal, NamedTuple, TypeVar

from migrate_agent.tools.harness.common import choices
from migrate_agent.tools.harness.common.partial_import import reduced

PROBE = "__migrate_agent_reach__"
"""The name of the function that notes a place: no code of a user may call it."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SILENT = (ast.Pass, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Statements that compute nothing: they do not count."""
Probed = TypeVar("Probed", bound=ast.AST)
Reached = Mapping[str, frozenset[int]]
"""Path of a file in the tree of its side → numbers of the places that ran."""


class Place(NamedTuple):
    """A statement in a function (`kind` "statement"), or an expression in one that may be left out while its statement runs ("part").

    `owner` is the qualified name of the innermost function that has a name.
    """

    node: ast.stmt | ast.expr
    kind: Literal["statement", "part"]
    owner: str

    @property
    def line(self) -> int:
        """The first line."""
        return self.node.lineno


def places(tree: ast.Module) -> tuple[Place, ...]:
    """All places of a file, in a fixed order: their numbers are indices into it."""
    return tuple(_below(tree.body, "", False))


def _below(body: Sequence[ast.stmt], owner: str, inside: bool) -> Iterator[Place]:
    for statement in body:
        if inside and not isinstance(statement, SILENT) and not _is_text(statement):
            yield Place(statement, "statement", owner)
        if isinstance(statement, (ast.ClassDef, *FUNCTIONS)):
            name = f"{owner}.{statement.name}" if owner else statement.name
            yield from _below(statement.body, name, isinstance(statement, FUNCTIONS))
            continue
        yield from (Place(part, "part", owner) for part in _parts(statement) if inside)
        for inner in blocks(statement):
            yield from _below(inner, owner, inside)


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies of a compound statement, without those of functions and classes."""
    for field in ("body", "orelse", "finalbody"):
        yield getattr(statement, field, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _parts(statement: ast.stmt) -> Iterator[ast.expr]:
    """Expressions of a statement's own line that may be left out: sides of `a if c else b`, what follows `and` and `or`, bodies of lambdas."""
    for node in _own_expressions(statement):
        if isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            yield from node.values[1:]
        elif isinstance(node, ast.Lambda):
            yield node.body


def _own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement's own line, from the outside to the inside; those inside one are looked up before it is given."""
    waiting: list[ast.AST] = [
        child for child in ast.iter_child_nodes(statement) if isinstance(child, (ast.expr, ast.withitem, ast.keyword))
    ]
    for node in waiting:
        if not isinstance(node, ast.JoinedStr):  # its parts have no position of their own on older versions of Python
            waiting += ast.iter_child_nodes(node)
            yield node


def _classes(body: Sequence[ast.stmt], owner: str) -> Iterator[str]:
    """The qualified names of all classes below, as `_below` spells them."""
    for statement in body:
        name = getattr(statement, "name", "") if isinstance(statement, (ast.ClassDef, *FUNCTIONS)) else ""
        inner = ".".join(filter(None, (owner, name)))
        if isinstance(statement, ast.ClassDef):
            yield inner
        for block in blocks(statement):
            yield from _classes(block, inner)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _put_probes(body: list[ast.stmt], numbers: Mapping[int, int]) -> None:
    """Put a probe before each numbered statement of a body and of those inside, and around each numbered expression."""
    probed: list[ast.stmt] = []
    for statement in body:
        number = numbers.get(id(statement))
        probed += [_at(ast.Expr(_probe(number)), statement), statement] if number is not None else [statement]
        if not isinstance(statement, (ast.ClassDef, *FUNCTIONS)):
            _put_around_parts(statement, numbers)
        for inner in blocks(statement):
            _put_probes(inner, numbers)
    body[:] = probed


def _put_around_parts(statement: ast.stmt, numbers: Mapping[int, int]) -> None:
    def around(part: ast.expr) -> ast.expr:
        number = numbers.get(id(part))
        # `set.add` gives None, which is false.
        return part if number is None else _at(ast.BoolOp(ast.Or(), [_probe(number), part]), part)

    for node in _own_expressions(statement):
        if isinstance(node, ast.IfExp):
            node.body, node.orelse = around(node.body), around(node.orelse)
        elif isinstance(node, ast.BoolOp):
            node.values[1:] = map(around, node.values[1:])
        elif isinstance(node, ast.Lambda):
            node.body = around(node.body)


def _probe(number: int) -> ast.Call:
    return ast.Call(ast.Name(PROBE, ast.Load()), [ast.Constant(number)], [])


def _at(new: Probed, node: ast.AST) -> Probed:
    """The new node with the position of an old one, which keeps its own."""
    waiting: list[ast.AST] = [new]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.expr, ast.stmt)) and not hasattr(part, "lineno"):
            ast.copy_location(part, node)
            waiting += ast.iter_child_nodes(part)
    return new


class _File:
    """A file that is counted: its places have the numbers from `first` on. What is seldom asked for is found out when it is."""

    def __init__(self, source: str, path: str, first: int) -> None:
        self.source, self.path, self.first = source, path, first

    @cached_property
    def tree(self) -> ast.Module:
        """The file as it was read."""
        return ast.parse(self.source, self.path)

    @cached_property
    def _places(self) -> tuple[Place, ...]:
        return places(self.tree)

    @cached_property
    def tests(self) -> Mapping[int, tuple[ast.expr, ...]]:
        """Place → the conditions around it."""
        around = _conditions(self.tree)
        return {number: around[id(place.node)] for number, place in enumerate(self._places, self.first)}

    @cached_property
    def owners(self) -> Mapping[int, str]:
        """Place → the qualified name of the innermost class around it, or ""."""
        classes = {*_classes(self.tree.body, "")}
        rows = {}
        for number, place in enumerate(self._places, self.first):
            owner = place.owner
            while owner and owner not in classes:
                owner = owner.rpartition(".")[0]
            rows[number] = owner
        return rows

    @cached_property
    def functions(self) -> Sequence[frozenset[int]]:
        """Places of each function, without those that only refuse."""
        return _functions(self.tree, self._places, self.first)


class _Counter:
    """The places of this process: a range of numbers for each file, and those that ran since they were last taken."""

    def __init__(self) -> None:
        self.root = self.folder = ""
        self.starts: dict[str, tuple[int, int]] = {}
        self.ran: set[int] = set()
        self.total = 0
        self.files: list[_File] = []
        self.choices: list[tuple[str, int]] = []
        """Path of the file and number in it, of each call by which data chooses."""

    def instrumented(self, source: str, path: str) -> ast.Module:
        """What is to run of a file, with probes."""
        tree = ast.parse(source, path)
        every = places(tree)
        # New numbers each time: functions of an import that failed half-way may still run, and count no more.
        first, self.total = self.total, self.total + len(every)
        self.starts[path] = first, len(every)
        self.files.append(_File(source, path, first))
        rows = choices.choices(tree)
        choices.instrument(rows, len(self.choices))
        self.choices += [(path, number) for number in range(len(rows))]
        tree = reduced(tree, path)
        _put_probes(tree.body, {id(place.node): first + number for number, place in enumerate(every)})
        return tree


_COUNTER = _Counter()


class CountingLoader(importlib.machinery.SourceFileLoader):
    """Loads a file with probes, past the bytecode cache."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of what is to run of the file."""
        source = decode_source(self.get_data(self.path))
        return compile(_COUNTER.instrumented(source, self.path), self.path, "exec", dont_inherit=True)


class CountingFinder(MetaPathFinder):
    """Finds the files below the root."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of such a file; `None` for all others."""
        if fullname.partition(".")[0] in sys.stdlib_module_names:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return None
        if not spec.origin.startswith(_COUNTER.root):
            return None
        spec.loader = CountingLoader(fullname, spec.origin)
        return spec


def count(root: Path, folder: str = "") -> None:
    """From now on count in the files that are imported from below `root`, which is this folder of the tree whose paths are told."""
    _COUNTER.root = f"{root}{os.sep}"
    _COUNTER.folder = f"{folder}/" if folder else ""
    _COUNTER.ran.clear()
    setattr(builtins, PROBE, _COUNTER.ran.add)
    setattr(builtins, choices.PROBE, choices.LISTENER)
    if not any(isinstance(finder, CountingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, CountingFinder())


def take() -> frozenset[int]:
    """The places that ran since the last call."""
    taken = frozenset(_COUNTER.ran)
    _COUNTER.ran.clear()
    return taken


def within(ran: Iterable[int], classes: Collection[str]) -> frozenset[int]:
    """Those of the places that lie in a class of one of these qualified names, or in no class."""
    chosen = frozenset(ran)
    return frozenset(number for file in _COUNTER.files for number in chosen & file.owners.keys() if file.owners[number] in {"", *classes})


def any_left(ran: Set[int]) -> bool:
    """Whether a function of which something ran has places that did not, beside those that only refuse."""
    return any(not function <= ran and not function.isdisjoint(ran) for file in _COUNTER.files for function in file.functions)


@lru_cache(maxsize=1)
def names_before_idle(ran: frozenset[int]) -> frozenset[str]:
    """The last parts of the names in the conditions around what did not run of functions of which something ran, and of the names that those have
    their values from, under one other name."""
    idle = [
        (file, number)
        for file in _COUNTER.files
        for function in file.functions
        if not function.isdisjoint(ran)
        for number in function - ran
    ]
    names = {name for file, number in idle for test in file.tests[number] for name in _names(test)}
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and names & {name for target in node.targets for name in _names(target)}:
                names |= _names(node.value)
            if isinstance(node, ast.Call):
                names |= {name for keyword in node.keywords if keyword.arg in names for name in _names(keyword.value)}
    return frozenset(names)


def _names(node: ast.AST) -> set[str]:
    parts = {part.id if isinstance(part, ast.Name) else part.attr for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute))}
    return parts - {"self"}


def _conditions(tree: ast.Module) -> dict[int, tuple[ast.expr, ...]]:
    """The `id` of each statement or side of an expression that stands in conditions → these, those that its own line asks too."""
    around: dict[int, tuple[ast.expr, ...]] = {}
    waiting: list[tuple[ast.AST, tuple[ast.expr, ...]]] = [(tree, ())]
    while waiting:
        node, tests = waiting.pop()
        around[id(node)] = tests
        inside = tests
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            inside = (*tests, node.test)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            inside = (*tests, node.iter)
        elif isinstance(node, ast.BoolOp):
            inside = (*tests, *node.values)
        elif isinstance(node, FUNCTIONS):
            inside = ()
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return around


def trees() -> Iterable[ast.Module]:
    """The files that were imported, as they were read."""
    return {file.path: file.tree for file in _COUNTER.files}.values()


def _functions(tree: ast.Module, every: Sequence[Place], first: int) -> list[frozenset[int]]:
    """Numbers of the places of each function of a file, without statements of blocks that end in a `raise`."""
    refusing = {
        id(statement)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        for block in blocks(node)
        if block and isinstance(block[-1], ast.Raise)
        for statement in block
    }
    functions: dict[str, set[int]] = {}
    for number, place in enumerate(every):
        if id(place.node) not in refusing:
            functions.setdefault(place.owner, set()).add(first + number)
    return [*map(frozenset, functions.values())]


def choice(number: int) -> tuple[str, int]:
    """The file, by its path in the tree, and the number in it, of a call by which data chooses."""
    path, inside = _COUNTER.choices[number]
    return _in_tree(path), inside


def _in_tree(path: str) -> str:
    # A folder that a file adds to `sys.path` may be spelled with `..`.
    return _COUNTER.folder + os.path.normpath(path).removeprefix(_COUNTER.root)


def by_file(numbers: Iterable[int]) -> dict[str, list[int]]:
    """Places of this process by file, as JSON."""
    chosen = sorted(numbers)
    rows = {}
    for path, (first, length) in _COUNTER.starts.items():
        if path.startswith(_COUNTER.root) and (inside := [number - first for number in chosen if first <= number < first + length]):
            rows[_in_tree(path)] = inside
    return rows


def told(sets: Mapping[str, Iterable[int]]) -> dict[str, object]:
    """Sets of places by name, as JSON: equal sets once."""
    different: dict[frozenset[int], int] = {}
    names = {name: different.setdefault(frozenset(numbers), len(different)) for name, numbers in sets.items()}
    return {"sets": [by_file(numbers) for numbers in different], "of": names}


def heard(row: object) -> dict[str, Reached]:
    """What `told` gave, by name. Raises `KeyError`, `TypeError`, `ValueError`, `AttributeError`, `IndexError` where it is of another form."""
    sets = [{str(path): frozenset(map(int, numbers)) for path, numbers in files.items()} for files in row["sets"]]  # type: ignore[index]
    return {str(name): sets[index] for name, index in row["of"].items()}  # type: ignore[index]


def union(rows: Iterable[Reached]) -> dict[str, frozenset[int]]:
    """All places of several."""
    joined: dict[str, frozenset[int]] = {}
    for row in rows:
        for path, numbers in row.items():
            joined[path] = joined.get(path, frozenset()) | numbers
    return joined
