"""The folders that a file puts on `sys.path` itself: `sys.path.append(os.path.join(os.path.dirname(__file__), "lib"))`.

They are read off the text: literal paths, `__file__`, `os.path` and `pathlib`, names that the file assigns from these, and its own functions that
add what they are given. What `__file__` leads to is one folder. A relative path counts from where the program runs: from the file's folder or one
above it, whichever has the module.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from migrate_agent.tools.scan.exports import dotted_text, parse
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.scan.walk import SourceError

_MENTION = re.compile(r"\bsys\b.*\bpath\b|\baddsitedir\b", re.S)
_SAME = frozenset("os.path.normcase os.fspath str pathlib.Path pathlib.PurePath pathlib.PosixPath".split())
"""Functions that give the path that they take."""
_NORMAL = frozenset("os.path.abspath os.path.realpath os.path.normpath".split())
"""Functions that give the path that they take without its `..`."""
_UNCHANGED_BY = frozenset({"absolute", "as_posix", "__str__"})
"""Methods of a path that give it itself."""
_CONSTANTS = {"os.pardir": "..", "os.path.pardir": "..", "os.curdir": ".", "os.path.curdir": ".", "os.sep": "/", "os.path.sep": "/"}
_WORKING = frozenset({"os.getcwd", "pathlib.Path.cwd"})
_DEEPEST = 4
"""Calls of the file's own functions that are followed into each other."""


class AddedRoots(NamedTuple):
    """Folders of the repository, in the order in which they are searched: those `before` the program's own folder, and those `after` it."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class _Path(NamedTuple):
    """A path from the repository's root (`anchored`), or one from where the program runs."""

    text: str
    anchored: bool

    def joined(self, other: _Path) -> _Path:
        return other if other.anchored else _Path(posixpath.join(self.text, other.text), self.anchored)

    def normal(self) -> _Path:
        return _Path(posixpath.normpath(self.text), self.anchored)

    def parent(self) -> _Path | None:
        """As `os.path.dirname` has it, which takes the last part away, be it `..`."""
        if set(self.text.split("/")) <= {".."} or self.text in (".", ""):
            return _Path(posixpath.normpath(posixpath.join(self.text, "..")), True) if self.anchored else None
        return _Path(posixpath.dirname(self.text) or ".", self.anchored)


_Values = dict[str, _Path | None]


def added_roots(path: str, text: str, folders: frozenset[str]) -> AddedRoots:
    """The folders, out of those of the repository that have Python files in or below them, that the file at `path` adds."""
    if not _MENTION.search(text):
        return AddedRoots()
    try:
        tree = parse(text)
    except SourceError:
        return AddedRoots()
    before: dict[str, None] = {}
    after: dict[str, None] = {}
    for is_first, entry in _Reader(path, tree).added():
        existing = dict.fromkeys(folder for folder in _folders(path, entry) if folder in folders)
        if is_first and entry.anchored:
            # The last that was inserted at the front is searched first.
            before = {**existing, **before}
        else:
            after |= existing
    return AddedRoots(tuple(before), tuple(folder for folder in after if folder not in before))


def _folders(path: str, added: _Path) -> Iterator[str]:
    if added.anchored:
        folder = added.normal().text
        yield "" if folder == "." else folder
        return
    start = posixpath.dirname(path)
    while True:
        folder = posixpath.normpath(posixpath.join(start, added.text))
        if not folder.startswith(".."):
            yield "" if folder == "." else folder
        if not start:
            return
        start = posixpath.dirname(start)


def _merged(branches: Sequence[_Values]) -> _Values:
    """The values after blocks which may run or not: none of a name that has several."""
    candidates: dict[str, set[_Path | None]] = {}
    for branch in branches:
        for name, value in branch.items():
            candidates.setdefault(name, set()).add(value)
    return {name: next(iter(values)) if len(values) == 1 else None for name, values in candidates.items()}


class _Reader:
    """Goes through a file in the order of its statements, with the paths that names stand for."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.file = _Path(path, True)
        self.tree = tree
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.imports: dict[str, str] = {}
        for node in walk(tree):
            if isinstance(node, ast.Import):
                self.imports |= {a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                self.imports |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}

    def added(self) -> Iterator[tuple[bool, _Path]]:
        """Whether it goes to the front of `sys.path`, and the path, of each that the file adds."""
        yield from self._block(self.tree.body, {"__file__": self.file}, 0)

    def _block(self, body: Iterable[ast.stmt], values: _Values, depth: int) -> Iterator[tuple[bool, _Path]]:
        for statement in body:
            yield from self._statement(statement, values, depth)

    def _statement(self, statement: ast.stmt, values: _Values, depth: int) -> Iterator[tuple[bool, _Path]]:
        match statement:
            case ast.Expr(value=ast.Call() as call):
                yield from self._call(call, values, depth)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = self.value(value, values)
            case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, op=ast.Add(), value=value):
                yield from self._assigned(target, value, isinstance(statement, ast.AugAssign), values)
            case ast.FunctionDef(body=body, args=arguments):
                parameters = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
                yield from self._block(body, {**values, **dict.fromkeys(parameters)}, depth)
            case ast.ClassDef(body=body):
                yield from self._block(body, dict(values), depth)
            case ast.For(target=ast.Name(id=name), iter=ast.List(elts=items) | ast.Tuple(elts=items), body=body):
                for item in items:
                    values[name] = self.value(item, values)
                    yield from self._block(body, values, depth)
            case ast.With(body=body):
                yield from self._block(body, values, depth)
            case _:
                branches = [values]
                for part in ("body", "orelse", "finalbody"):
                    branches.append(dict(values))
                    yield from self._block(getattr(statement, part, ()), branches[-1], depth)
                for handler in getattr(statement, "handlers", ()):
                    branches.append(dict(values))
                    yield from self._block(handler.body, branches[-1], depth)
                values |= _merged(branches)

    def _call(self, call: ast.Call, values: _Values, depth: int) -> Iterator[tuple[bool, _Path]]:
        name = self._dotted(call.func)
        match name, call.args:
            case "sys.path.append" | "site.addsitedir", [value]:
                yield from self._each([value], False, values)
            case "sys.path.insert", [position, value]:
                yield from self._each([value], isinstance(position, ast.Constant) and position.value == 0, values)
            case "sys.path.extend", [ast.List(elts=items) | ast.Tuple(elts=items)]:
                yield from self._each(items, False, values)
            case str(), _ if (function := self.functions.get(name)) is not None and depth < _DEEPEST:
                parameters = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
                arguments: dict[str, ast.expr] = dict(zip(parameters, call.args, strict=False))
                arguments |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
                bound = {parameter: self.value(value, values) for parameter, value in arguments.items()}
                if any(bound.values()):
                    yield from self._block(function.body, {**values, **dict.fromkeys(parameters), **bound}, depth + 1)

    def _assigned(self, target: ast.expr, value: ast.expr, is_added: bool, values: _Values) -> Iterator[tuple[bool, _Path]]:
        """What `sys.path += […]`, `sys.path[:0] = […]` and `sys.path = […] + sys.path` add."""
        match target, value:
            case ast.Subscript(value=owner, slice=ast.Slice(upper=ast.Constant(value=0))), ast.List(elts=items) if not is_added:
                is_first = True
            case ast.Attribute() as owner, ast.List(elts=items) if is_added:
                is_first = False
            case ast.Attribute() as owner, ast.BinOp(left=ast.List(elts=items), op=ast.Add()):
                is_first = True
            case ast.Attribute() as owner, ast.BinOp(op=ast.Add(), right=ast.List(elts=items)):
                is_first = False
            case _:
                return
        if self._dotted(owner) == "sys.path":
            yield from self._each(items, is_first, values)

    def _each(self, items: Sequence[ast.expr], is_first: bool, values: _Values) -> Iterator[tuple[bool, _Path]]:
        # Of several inserted together the first is searched first.
        for item in reversed(items) if is_first else items:
            if (value := self.value(item, values)) is not None:
                yield is_first, value

    def _dotted(self, node: ast.expr) -> str:
        first, dot, rest = (dotted_text(node) or "").partition(".")
        return self.imports.get(first, first) + dot + rest

    def value(self, node: ast.expr, values: Mapping[str, _Path | None]) -> _Path | None:
        """The path that an expression gives; `None` where the text does not determine it."""
        match node:
            case ast.Constant(value=str(text)):
                return None if text.startswith(("/", "~")) else _Path(text, False)
            case ast.Name(id=name) if name in values:
                return values[name]
            case ast.Name() | ast.Attribute() if (constant := _CONSTANTS.get(self._dotted(node))) is not None:
                return _Path(constant, False)
            case ast.Attribute(value=owner, attr="parent"):
                return self._above(owner, 1, values)
            case ast.Subscript(value=ast.Attribute(value=owner, attr="parents"), slice=ast.Constant(value=int(index))) if index >= 0:
                return self._above(owner, index + 1, values)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._joined([left, right], values)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._text([left, right], values)
            case ast.JoinedStr(values=parts):
                return self._text([part.value if isinstance(part, ast.FormattedValue) else part for part in parts], values)
            case ast.Call():
                return self._result(node, values)
        return None

    def _result(self, call: ast.Call, values: Mapping[str, _Path | None]) -> _Path | None:
        name = self._dotted(call.func)
        if name in _WORKING:
            return _Path(".", False)
        if name in _SAME and len(call.args) == 1:
            return self.value(call.args[0], values)
        if name in _NORMAL and len(call.args) == 1:
            value = self.value(call.args[0], values)
            return value.normal() if value is not None else None
        if name == "os.path.join" or name in _SAME:
            return self._joined(call.args, values)
        if name == "os.path.dirname" and len(call.args) == 1:
            return self._above(call.args[0], 1, values)
        match call.func:
            case ast.Attribute(value=owner, attr=method) if method in _UNCHANGED_BY:
                return self.value(owner, values)
            case ast.Attribute(value=owner, attr="resolve"):
                value = self.value(owner, values)
                return value.normal() if value is not None else None
            case ast.Attribute(value=owner, attr="joinpath"):
                return self._joined([owner, *call.args], values)
        return None

    def _above(self, node: ast.expr, levels: int, values: Mapping[str, _Path | None]) -> _Path | None:
        value = self.value(node, values)
        for _ in range(levels):
            value = value.parent() if value is not None else None
        return value

    def _joined(self, nodes: Sequence[ast.expr], values: Mapping[str, _Path | None]) -> _Path | None:
        return self._combined(nodes, values, _Path.joined)

    def _text(self, nodes: Sequence[ast.expr], values: Mapping[str, _Path | None]) -> _Path | None:
        """Text that is put together of others, with which a path goes on: `BASE + "/lib"`."""
        literal = [node.value for node in nodes[1:] if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        start = self.value(nodes[0], values) if nodes else None
        if start is not None and len(literal) == len(nodes) - 1:
            return _Path(start.text + "".join(literal), start.anchored)
        return self._combined(nodes, values, lambda one, other: None if other.anchored else _Path(one.text + other.text, one.anchored))

    def _combined(
        self, nodes: Sequence[ast.expr], values: Mapping[str, _Path | None], combine: Callable[[_Path, _Path], _Path | None]
    ) -> _Path | None:
        result: _Path | None = None
        for index, node in enumerate(nodes):
            value = self.value(node, values)
            if value is None:
                return None
            result = combine(result, value) if index and result is not None else value
            if result is None:
                return None
        return result
