"""A file with its places, and which of its statements did not run."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from migrate_agent.tools.harness.common.reach import FUNCTIONS, Place, blocks, places
from migrate_agent.tools.verify.evidence.no_counterpart import for_compilers
from migrate_agent.tools.verify.evidence.parsed_source import bindings, dotted

SAYING = ("warn", "warning", "info", "debug", "print", "warn_once", "warning_once", "deprecate")
"""Last names of calls that tell people something, and compute nothing."""
UNTOLD = frozenset({"extra_repr", "__repr__", "__str__", "_get_name"})
"""Methods that are for people alone."""
COMPILING = ("jit",)
"""Last names of decorators of the original whose function a compiler reads from its source."""
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
DIGITS = 10


class Missed(NamedTuple):
    """Consecutive statements of the function `owner` that did not run. `condition` says when they would, where that is known."""

    path: str
    owner: str
    nodes: tuple[ast.stmt, ...]
    condition: str
    text: str

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last line."""
        last = self.nodes[-1]
        return self.nodes[0].lineno, last.end_lineno or last.lineno

    def __str__(self) -> str:
        first, last = self.lines
        return f"{self.path}:{first}{f'-{last}' if last > first else ''} ({self.owner}): {self.text}"


class CountedFile:
    """The places of a file, and digests by which they are found again where other text of the file is another."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self.places: tuple[Place, ...] = places(self.tree)

    @cached_property
    def _digests(self) -> tuple[str, ...]:
        """A digest of each place: its own text without the statements in it, and which of equal ones in its function it is."""
        seen: Counter[tuple[str, str]] = Counter()
        digests = []
        for place in self.places:
            text = ast.dump(_bare(place.node))
            seen[place.owner, text] += 1
            digests.append(hashlib.sha256(f"{seen[place.owner, text]} {text}".encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS])
        return tuple(digests)

    def digests_of(self, numbers: Collection[int]) -> dict[str, frozenset[str]]:
        """Function → digests of these places in it."""
        rows: dict[str, set[str]] = {}
        for number in numbers:
            rows.setdefault(self.places[number].owner, set()).add(self._digests[number])
        return {owner: frozenset(digests) for owner, digests in rows.items()}

    def numbers_of(self, ran: Mapping[str, Collection[str]], path: str) -> set[int]:
        """The places whose digests are among those of their function (`path:function`)."""
        pairs = enumerate(zip(self.places, self._digests, strict=True))
        return {number for number, (place, digest) in pairs if digest in ran.get(f"{path}:{place.owner}", ())}

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {id(place.node): number for number, place in enumerate(self.places)}

    def missed(self, names: Collection[str], done: Collection[int]) -> list[Missed]:
        """The statements of these definitions that did not run, without those that only refuse or tell something."""
        return list(self._missed(self.tree.body, "", False, names, done, ""))

    def within(self, rows: Collection[Missed]) -> set[int]:
        """The statements of these rows that compute something, without those that only refuse or tell."""
        nodes = {id(node) for row in rows for node in _computing(row.nodes)} - self._dead
        return {self._numbers[node] for node in nodes & self._numbers.keys()}

    @cached_property
    def _dead(self) -> frozenset[int]:
        """The statements that stand behind one that leaves their block: they never run."""
        bodies = [body for node in ast.walk(self.tree) if isinstance(node, ast.stmt) for body in blocks(node)]
        return frozenset(id(node) for body in bodies for statement in body[len(_alive(body)) :] for node in ast.walk(statement))

    def narrowed(self, done: Collection[int], *, refused: Callable[[ast.AST], bool]) -> list[tuple[str, ast.If]]:
        """Function and `if`, once for each part of its condition that was never looked at, where a side of it did not run or is `refused`."""
        rows = []
        for number, place in enumerate(self.places):
            if not isinstance(place.node, ast.If) or number not in done:
                continue
            firsts = [side[0] for side in (place.node.body, place.node.orelse) if side]
            if any(refused(first) or self._numbers.get(id(first), -1) not in done for first in firsts):
                parts = (self._numbers.get(id(part)) for part in ast.walk(place.node.test))
                rows += [(place.owner, place.node) for part in parts if part is not None and part not in done]
        return rows

    def one_sided(self, done: Collection[int]) -> list[Place]:
        """The sides of `a if c else b` that did not run, while the other one did."""
        sides = [
            pair
            for place in self.places
            if place.kind == "statement"
            for node in _within(place.node)
            if isinstance(node, ast.IfExp)
            for pair in ((node.body, node.orelse), (node.orelse, node.body))
        ]
        numbers = [(self._numbers.get(id(side), -1), self._numbers.get(id(other), -1)) for side, other in sides]
        return [self.places[number] for number, other in dict.fromkeys(numbers) if number >= 0 and number not in done and other in done]

    @cached_property
    def _imported(self) -> dict[str, str]:
        return bindings(self.tree)

    @cached_property
    def compiled(self) -> frozenset[str]:
        """The functions whose lines never run, since a compiler reads them: `triton.jit`."""
        return frozenset(
            name
            for name, node in _functions(self.tree.body, "")
            for decorator in node.decorator_list
            if dotted(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(".")[2] in COMPILING
        )

    def _missed(
        self, body: Sequence[ast.stmt], owner: str, inside: bool, names: Collection[str], done: Collection[int], condition: str
    ) -> Iterator[Missed]:
        row: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, (ast.ClassDef, *FUNCTIONS)):
                name = f"{owner}.{statement.name}" if owner else statement.name
                if name.partition(".")[0] in names and statement.name not in UNTOLD:
                    yield from self._missed(statement.body, name, isinstance(statement, FUNCTIONS), names, done, "")
            elif not inside or self._numbers.get(id(statement), -1) in done:
                for inner in blocks(statement):
                    if not for_compilers(statement, inner, self._imported):
                        yield from self._missed(inner, owner, inside, names, done, _condition(statement, inner))
            elif id(statement) in self._numbers and not _says(statement):
                row.append(statement)
        if row and not _computes_nothing([statement for statement in row if id(statement) not in self._dead] or row):
            yield Missed("", owner, tuple(row), condition, self.text.splitlines()[row[0].lineno - 1].strip())


def _computing(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of those inside of it, without bodies that only refuse or tell something."""
    for statement in () if _computes_nothing(_alive(body)) else _alive(body):
        if not _says(statement):
            yield statement
        for inner in blocks(statement):
            if inner:
                yield from _computing(inner)


def _alive(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """The statements of a body up to the first one that leaves it: what stands behind it never runs."""
    leaving = next((number for number, statement in enumerate(body) if isinstance(statement, LEAVING)), len(body))
    return body[: leaving + 1]


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement's own line, without those of the statements in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield child
            yield from _within(child)


def _functions(body: Sequence[ast.stmt], owner: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of a file by qualified name."""
    for statement in body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            name = f"{owner}.{statement.name}" if owner else statement.name
            if not isinstance(statement, ast.ClassDef):
                yield name, statement
            yield from _functions(statement.body, name)
        else:
            for inner in blocks(statement):
                yield from _functions(inner, owner)


@lru_cache(maxsize=64)
def counted_file(text: str) -> CountedFile:
    """The file of a text, which parses."""
    return CountedFile(text)


def _bare(node: ast.AST) -> ast.AST:
    """The node without the statements in it."""
    bare = copy.copy(node)
    for field in BODIES:
        if isinstance(node, ast.stmt) and hasattr(node, field):
            setattr(bare, field, [])
    return bare


def _condition(statement: ast.stmt, inner: Sequence[ast.stmt]) -> str:
    """When a body of a compound statement runs, in words; "" where that is not known."""
    if isinstance(statement, (ast.If, ast.While)):
        holds = "holds" if inner is statement.body else "does not hold"
        return f"for which `{_short(statement.test)}` {holds}"
    if isinstance(statement, (ast.For, ast.AsyncFor)) and inner is statement.body:
        return f"for which `{_short(statement.iter)}` is not empty"
    if isinstance(statement, ast.Match):
        return f"in which `{_short(statement.subject)}` is that"
    return ""


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:58]} …"


def refuses(body: Sequence[ast.stmt]) -> bool:
    """Whether statements that follow each other end in a `raise`, whatever they do before."""
    returns = any(isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) for part in body for node in ast.walk(part))
    return isinstance(body[-1], ast.Raise) and not returns


def branches(body: Sequence[ast.stmt]) -> int:
    """How many ways through these statements compute something: bodies without further branches that do not end in a `raise`."""
    inner = [part for statement in body for part in blocks(statement) if part]
    return sum(map(branches, inner)) if inner else int(not refuses(body))


def _says(statement: ast.stmt) -> bool:
    """Whether a statement only tells people something."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in SAYING


def _computes_nothing(body: Sequence[ast.stmt]) -> bool:
    """Whether all ways through statements that follow each other only refuse or tell something."""
    return (
        not body
        or refuses(body)
        or all(isinstance(statement, ast.Pass) or _says(statement) or _asks_and_refuses(statement) for statement in body)
    )


def _asks_and_refuses(statement: ast.stmt) -> bool:
    """Whether a statement is an `if` both sides of which compute nothing, as one is that refuses unless the environment says otherwise."""
    if not isinstance(statement, ast.If) or any(isinstance(node, ast.NamedExpr) for node in ast.walk(statement.test)):
        return False
    return _computes_nothing(statement.body) and _computes_nothing(statement.orelse)
