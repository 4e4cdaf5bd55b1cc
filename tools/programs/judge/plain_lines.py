"""Lines that no run reaches and that are plain Python: counters, flags, printed texts, early ends. Runs inside the sandbox.

    else:
        bad_counter += 1
    if bad_counter == 4:
        break

Such a line needs no run where both sides have it in the same words, under the same conditions, where the names in it, and in its conditions, held the
same plain values one after the other on both sides, and where plain lines alone read what it changes, the same ones on both sides.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypedDict

import numpy as np

MODULE = ("<module>", 0)
"""What stands for the function of the file's own statements."""
Scalar = bool | int | float | str | None
OTHER = ["other"]
"""What stands for the values of a name that held something other than plain ones."""
MOST_VALUES = 500
"""How many values of a name are compared, one after the other; one that holds more counts as something other."""
CLOSE = 1e-6
"""Largest relative difference of two values that count as the same: far under what an edited constant differs by, far over rounding in float64."""
LOGGERS = ("logging", "logger", "log")
FILE_CALLS = {
    **dict.fromkeys(("os.remove", "os.unlink", "remove_checkpoint"), "remove"),
    **dict.fromkeys(("os.rename", "os.replace", "shutil.move", "move_checkpoint"), "move"),
    **dict.fromkeys(("shutil.copyfile", "shutil.copy", "shutil.copy2", "copy_checkpoint"), "copy"),
    **dict.fromkeys(("os.makedirs", "os.mkdir"), "create"),
}
"""What is done to files and folders by their names, with the word that both sides have for it: a checkpoint of the rewrite is a folder."""
TEXTS = ("os.path.join", "os.path.basename", "os.path.dirname", "os.path.splitext")
BUILTINS = ("print", "len", "str", "int", "float", "bool", "round", "abs", "repr")
EXPRESSIONS = (
    ast.Constant,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.BoolOp,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.IfExp,
    ast.Tuple,
    ast.boolop,
    ast.operator,
    ast.unaryop,
    ast.cmpop,
    ast.expr_context,
)


class Row(TypedDict):
    """A plain line that did not run: its number, where it stands and what it says, what its names held, and the lines that read what it changes."""

    line: int
    key: list[str]
    values: dict[str, list[Any]]
    readers: list[list[str]]


@dataclass(frozen=True)
class PlainLine:
    """A plain statement of the file: `scope` is its function and the conditions that it stands under, `names` are those that must hold plain values."""

    line: int
    function: tuple[str, int]
    scope: tuple[str, ...]
    text: str
    names: frozenset[str]
    node: ast.AST
    """What of it stands on the line itself: the whole statement, or a condition."""

    @property
    def key(self) -> list[str]:
        """Where it stands and what it says."""
        return [*self.scope, self.text]

    @property
    def bare(self) -> bool:
        """Whether it gives back a name or an attribute as it is, so that it does not matter what that holds."""
        return isinstance(self.node, ast.Return) and self.node.value is not None and _is_bare(self.node.value)

    @property
    def changed(self) -> list[str]:
        """The names that it changes, with their attributes."""
        targets = (
            self.node.targets if isinstance(self.node, ast.Assign) else [self.node.target] if isinstance(self.node, ast.AugAssign) else []
        )
        return [_chain(target) for target in targets]


class PlainLines:
    """The plain lines of a file, and what their names hold while it runs."""

    def __init__(self, text: str) -> None:
        tree = ast.parse(text)
        self.lines = list(_plain_lines(tree.body, MODULE, (), frozenset()))
        self._names = {
            line.function: sorted({n for one in self.lines if one.function == line.function for n in one.names}) for line in self.lines
        }
        self._values: dict[tuple[str, int], dict[str, list[Any]]] = {}
        self._reads = _reads(tree)
        self._variables: dict[str, Any] = {}
        """Those of the file while it ran."""

    def look(self, frame: FrameType) -> None:
        """Note what the names of the plain lines of a running function hold."""
        self._variables = frame.f_globals
        name = frame.f_code.co_name
        function = MODULE if name == MODULE[0] else (name, frame.f_code.co_firstlineno)
        names = self._names.get(function)
        if names is None:
            return
        values = self._values.setdefault(function, {})
        for name in names:
            value = _value(frame, name)
            if value is not MISSING:
                values[name] = _noted(values.get(name, []), value)

    def rows(self, unrun: Sequence[int]) -> list[Row]:
        """The plain lines among those that did not run."""
        return [row for line in self.lines if line.line in unrun and self._is_known(line.node) for row in self._row(line)]

    def _is_known(self, node: ast.AST) -> bool:
        """Whether what a statement calls by the name of a helper for checkpoints is that helper."""
        names = {call.func.id for call in ast.walk(node) if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)}
        return all(_is_copied(self._variables.get(name), name) for name in names & FILE_CALLS.keys())

    def _row(self, line: PlainLine) -> Iterator[Row]:
        values = self._values.get(line.function)
        if values is None:
            # Nothing of the function ran.
            if line.bare:
                yield Row(line=line.line, key=line.key, values={}, readers=[])
            return
        readers = [self._readers(name) for name in line.changed]
        gives = isinstance(line.node, ast.Return) and line.node.value is not None
        if gives or None in readers or any(values.get(name, OTHER) == OTHER for name in line.names):
            # What is given back, and what is read elsewhere, may matter to lines that are not plain.
            return
        keys = sorted(key for part in readers if part is not None for key in part)
        yield Row(line=line.line, key=line.key, values={name: values[name] for name in sorted(line.names)}, readers=keys)

    def _readers(self, name: str) -> list[list[str]] | None:
        """The plain lines that read a name, as keys; `None` where others do, or may."""
        root, _, last = name.rpartition(".")
        plain = [(line.key, _reads(line.node)[last]) for line in self.lines]
        if root not in ("", "self") or sum(count for _, count in plain) < self._reads[last]:
            return None
        return [key for key, count in plain if count]


def _reads(tree: ast.AST) -> Counter[str]:
    """How often each name, and each attribute of that name, is read."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)]
    return Counter(node.id if isinstance(node, ast.Name) else node.attr for node in nodes)


MISSING = object()


def _value(frame: FrameType, name: str) -> Any:
    """What a name, or attributes of one, hold in a frame; nothing is computed for it."""
    root, *attributes = name.split(".")
    value = frame.f_locals.get(root, frame.f_globals.get(root, MISSING))
    for attribute in attributes:
        value = getattr(value, "__dict__", {}).get(attribute, MISSING)
    return value


def _noted(before: list[Any], value: Any) -> list[Any]:
    value = value.item() if isinstance(value, np.generic) else value
    if before == OTHER or not isinstance(value, Scalar) or len(before) > MOST_VALUES:
        return OTHER
    # Both would be no JSON.
    value = str(value) if isinstance(value, float) and not math.isfinite(value) else value
    repeated = bool(before) and type(before[-1][0]) is type(value) and before[-1][0] == value
    return before if repeated else [*before, [value]]


def _plain_lines(
    statements: Sequence[ast.stmt], function: tuple[str, int], scope: tuple[str, ...], names: frozenset[str]
) -> Iterator[PlainLine]:
    files: tuple[str, ...] = ()
    """What the block does to files before: its order matters."""
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([statement.lineno, *(one.lineno for one in statement.decorator_list)])
            yield from _plain_lines(statement.body, (statement.name, first), (*scope, f"def {statement.name}"), frozenset())
        elif isinstance(statement, ast.ClassDef):
            yield from _plain_lines(statement.body, (statement.name, statement.lineno), (*scope, f"class {statement.name}"), frozenset())
        elif isinstance(statement, (ast.If, ast.While)):
            yield from _branches(statement, function, scope, names)
        else:
            for inside, block in _blocks(statement):
                yield from _plain_lines(block, function, (*scope, inside), names)
            if (own := _names_of(statement)) is not None:
                words = _words(statement)
                yield PlainLine(statement.lineno, function, (*scope, *files), words, names | own, statement)
                files += (words,) if words.partition(" ")[0] in FILE_CALLS.values() else ()


def _branches(node: ast.If | ast.While, function: tuple[str, int], scope: tuple[str, ...], names: frozenset[str]) -> Iterator[PlainLine]:
    own, text = _names_in(node.test), f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    if own is None:
        # Where it holds depends on values that are not looked at.
        return
    yield PlainLine(node.lineno, function, scope, text, names | own, node.test)
    yield from _plain_lines(node.body, function, (*scope, text), names | own)
    yield from _plain_lines(node.orelse, function, (*scope, f"{text}: else"), names | own)


def _blocks(statement: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of loops, contexts and handlers: how often these run shows in what does run."""
    kind = type(statement).__name__
    for part in ("body", "orelse", "finalbody"):
        if block := getattr(statement, part, None):
            yield f"{kind} {part}", block
    for handler in getattr(statement, "handlers", ()):
        yield f"except {ast.unparse(handler.type) if handler.type is not None else ''}", handler.body


def _is_copied(function: Any, name: str) -> bool:
    """Whether a function has the source of our helper of this name."""
    from migrate_agent.tools.programs.vendored import checkpoints

    try:
        one, other = (ast.dump(ast.parse(inspect.getsource(each))) for each in (function, getattr(checkpoints, name)))
    except (OSError, TypeError, SyntaxError):
        return False
    return one == other


def _words(statement: ast.stmt) -> str:
    """The text of a plain statement, with one word for what both sides call differently."""
    match statement:
        case ast.Expr(value=ast.Call(func=function, args=arguments, keywords=[])) if word := FILE_CALLS.get(ast.unparse(function)):
            return f"{word} {', '.join(map(ast.unparse, arguments))}"
    return ast.unparse(statement)


def _names_of(statement: ast.stmt) -> frozenset[str] | None:
    """The names that a plain statement reads, and those that it changes; `None` for any other."""
    if isinstance(statement, (ast.Break, ast.Continue)):
        return frozenset()
    if isinstance(statement, (ast.Expr, ast.Return)):
        return _names_in(statement.value) if statement.value is not None else frozenset()
    if isinstance(statement, ast.AugAssign):
        target, value = _chain(statement.target), _names_in(statement.value)
        return value | {target} if target and value is not None else None
    if isinstance(statement, ast.Assign) and all(_chain(target) for target in statement.targets):
        return _names_in(statement.value)
    return None


def _names_in(node: ast.expr) -> frozenset[str] | None:
    """The names that a plain expression reads: constants, numbers and texts; `None` for any other."""
    if name := _chain(node):
        return frozenset([name])
    if isinstance(node, ast.Call):
        return _names_in_call(node)
    if not isinstance(node, EXPRESSIONS):
        return None
    parts = [_names_in(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return None if None in parts else frozenset().union(*(part for part in parts if part is not None))


def _names_in_call(call: ast.Call) -> frozenset[str] | None:
    """Those of a call that prints, logs, closes something, makes a text or a number, or removes, copies or moves files by their names."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "close" and _chain(function.value) and not call.args and not call.keywords:
        # What an object holds at its end, such as an environment or a log, is no number that training goes on with.
        return frozenset()
    text = isinstance(function, ast.Attribute) and function.attr == "format" and isinstance(function.value, ast.Constant)
    log = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in LOGGERS
    plain = ast.unparse(function) in (*BUILTINS, *TEXTS, *FILE_CALLS)
    if not (text or log or plain):
        return None
    parts = [_names_in(one) for one in (*call.args, *(keyword.value for keyword in call.keywords))]
    return None if None in parts else frozenset().union(*(part for part in parts if part is not None))


def _chain(node: ast.expr) -> str:
    """A name with or without attributes, as text; "" for anything else."""
    inner = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return ast.unparse(node) if isinstance(inner, ast.Name) else ""


def _is_bare(node: ast.expr) -> bool:
    length = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1
    return bool(_chain(node.args[0] if isinstance(node, ast.Call) and length else node)) or isinstance(node, ast.Constant)


def same_lines(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> tuple[set[int], set[int]]:
    """The plain lines that both sides have, as numbers on either side: the same words in the same place as often, on the same values."""

    def places(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
        result: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for row in rows:
            result.setdefault(tuple(row["key"]), []).append(row)
        return result

    one, other = places(ours), places(theirs)
    pairs = [
        pair for key in one.keys() & other.keys() if len(one[key]) == len(other[key]) for pair in zip(one[key], other[key], strict=True)
    ]
    matches = [(a["line"], b["line"]) for a, b in pairs if _same_values(a["values"], b["values"]) and a["readers"] == b["readers"]]
    return {line for line, _ in matches}, {line for _, line in matches}


def _same_values(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    return ours.keys() == theirs.keys() and all(
        len(ours[name]) == len(theirs[name]) and all(map(_same, ours[name], theirs[name])) for name in ours
    )


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    if all(isinstance(row[0], float) for row in (one, other)):
        return math.isclose(one[0], other[0], rel_tol=CLOSE)
    return list(one) == list(other) and type(one[0]) is type(other[0])
