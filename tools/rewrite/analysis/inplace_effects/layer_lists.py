"""With which layers the sequences begin that a constructor puts together, statement by statement, on each path through it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.repo import FunctionNode
from migrate_agent.tools.scan.nodes import walk

KNOWN_LAYERS = 4
"""So many layers at the front of a list are followed: two are asked for, and slices cut some off."""
MOST_PATHS = 256
Constant = str | bytes | bool | int | float | complex | None


@dataclass(frozen=True)
class Front:
    """The first layers of a list; `whole` where there are no others."""

    layers: tuple[ast.expr, ...] = ()
    whole: bool = True

    def followed_by(self, other: Front | None) -> Front | None:
        """The front of this list and, behind it, another one."""
        if not self.whole:
            return self
        if other is None:
            # The layers in front are known all the same.
            return Front(self.layers, whole=False) if self.layers else None
        layers = (*self.layers, *other.layers)
        return Front(layers[:KNOWN_LAYERS], other.whole and len(layers) <= KNOWN_LAYERS)

    def without(self, count: int) -> Front | None:
        """The front of the list without so many layers."""
        return Front(self.layers[count:], self.whole) if self.whole or count <= len(self.layers) else None


@dataclass(frozen=True)
class Path:
    """One path to a statement: what its conditions came to, and what local names stand for there."""

    decided: Mapping[str, bool] = field(default_factory=dict)
    lists: Mapping[str, Front] = field(default_factory=dict)
    values: Mapping[str, ast.expr] = field(default_factory=dict)

    def bind(self, name: str, value: Front | ast.expr | None) -> Path:
        """The path after an assignment to a name; a value of `None` is unknown."""
        lists = {key: binding for key, binding in self.lists.items() if key != name}
        values = {key: binding for key, binding in self.values.items() if key != name}
        if isinstance(value, Front):
            lists[name] = value
        elif value is not None:
            values[name] = value
        return Path(_without(self.decided, name), lists, values)

    @property
    def key(self) -> object:
        """What tells two paths apart."""
        lists = frozenset((name, tuple(map(id, front.layers)), front.whole) for name, front in self.lists.items())
        return frozenset(self.decided.items()), lists, frozenset((name, id(value)) for name, value in self.values.items())


class Unclear(Exception):
    """A method's lists cannot be followed."""


def sequence_fronts(
    method: FunctionNode, is_target: Callable[[ast.expr], bool], is_sequence: Callable[[ast.expr], bool], arguments: Mapping[str, Constant]
) -> list[Front | None]:
    """The first layers of each value that a method assigns to a target, over all paths; `None` for one that is no known sequence of layers.

    `arguments` are parameters of the method with their values, where these are known.
    """
    values: dict[str, ast.expr] = {name: ast.Constant(value) for name, value in arguments.items()}
    walked = _Paths(is_target, is_sequence)
    try:
        walked.run(method.body, [Path(values=values)])
    except Unclear:
        return [None]
    return walked.found


class _Paths:
    """Goes through the statements of a method on all paths at once."""

    def __init__(self, is_target: Callable[[ast.expr], bool], is_sequence: Callable[[ast.expr], bool]) -> None:
        self._is_target, self._is_sequence = is_target, is_sequence
        self.found: list[Front | None] = []

    def run(self, statements: Sequence[ast.stmt], paths: list[Path]) -> list[Path]:
        """The paths behind statements."""
        for statement in statements:
            paths = self._distinct([after for path in paths for after in self._step(statement, path)])
        return paths

    def _distinct(self, paths: Iterable[Path]) -> list[Path]:
        distinct = list({path.key: path for path in paths}.values())
        if len(distinct) > MOST_PATHS:
            raise Unclear
        return distinct

    def _step(self, statement: ast.stmt, path: Path) -> list[Path]:
        match statement:
            case ast.If():
                return self._branch(statement, path)
            case ast.For() | ast.While():
                return self._loop(statement, path)
            case ast.With(body=body):
                return self.run(body, [path])
            case ast.Return() | ast.Raise():
                return []
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value) if self._is_target(
                target
            ):
                self.found.append(self._assigned_front(value, path))
                return [self._after_uses(value, path)]
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                front = self._front(value, path)
                # Two names for one list: what is appended to one of them shows in the other.
                if isinstance(value, ast.Name) and front is not None:
                    return [path.bind(value.id, None).bind(name, None)]
                binding = front if front is not None else path.values.get(value.id) if isinstance(value, ast.Name) else value
                return [self._after_uses(value, path).bind(name, binding)]
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) if name in path.lists:
                return [self._after_uses(value, path).bind(name, path.lists[name].followed_by(self._front(value, path)))]
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=[value])) if name in path.lists:
                if attr in ("append", "extend"):
                    added = self._front(ast.List([value], ast.Load()) if attr == "append" else value, path)
                    return [path.bind(name, path.lists[name].followed_by(added))]
        if any(isinstance(node, (ast.Break, ast.Continue, ast.Try)) for node in walk(statement)):
            raise Unclear
        path = self._after_uses(statement, path)
        for node in walk(statement):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                path = path.bind(node.id, None)
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                path = Path(_without(path.decided, node.attr), path.lists, path.values)
        if any(isinstance(node, ast.expr) and self._is_target(node) for node in walk(statement)):
            self.found.append(None)
        return [path]

    def _branch(self, statement: ast.If, path: Path) -> list[Path]:
        outcome, text, is_negated = self._decided(statement.test, path)
        path = self._after_uses(statement.test, path)
        paths: list[Path] = []
        for branch, is_taken in ((statement.body, True), (statement.orelse, False)):
            if outcome is None or outcome == is_taken:
                decided = {**path.decided, text: is_taken != is_negated} if text else path.decided
                paths += self.run(branch, [Path(decided, path.lists, path.values)])
        # A condition on which no list depends need not be remembered.
        plain = [Path(_without(after.decided, text, whole=True), after.lists, after.values) for after in paths]
        return plain[:1] if len(plain) > 1 and len({after.key for after in plain}) == 1 else paths

    def _loop(self, statement: ast.For | ast.While, path: Path) -> list[Path]:
        targets = walk(statement.target) if isinstance(statement, ast.For) else []
        names = [node.id for node in targets if isinstance(node, ast.Name)]
        reached = latest = [self._after_uses(statement.iter if isinstance(statement, ast.For) else statement.test, path)]
        met_keys = {one.key for one in reached}
        while latest:
            begun = latest
            for name in names:
                begun = [one.bind(name, None) for one in begun]
            latest = [after for after in self.run(statement.body, begun) if after.key not in met_keys]
            met_keys |= {after.key for after in latest}
            reached = self._distinct([*reached, *latest])
        return self.run(statement.orelse, reached)

    def _decided(self, test: ast.expr, path: Path) -> tuple[bool | None, str, bool]:
        """What a condition comes to on a path, as far as it is known; the text that it is remembered by, or ""; whether that is its contrary."""
        negated = False
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, negated = test.operand, not negated
        binding = _known(test, path)
        if binding is not None:
            return bool(binding.value) != negated, "", negated
        # What a call gives, or whether a list is empty, may be another the next time.
        volatile = any(isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id in path.lists) for node in ast.walk(test))
        text = "" if volatile else ast.unparse(test)
        outcome = path.decided.get(text)
        return (None if outcome is None else outcome != negated), text, negated

    def _assigned_front(self, value: ast.expr, path: Path) -> Front | None:
        is_sequence = isinstance(value, ast.Call) and self._is_sequence(value.func) and not value.keywords
        return self._front(ast.List(value.args, ast.Load()), path) if is_sequence and isinstance(value, ast.Call) else None

    def _front(self, node: ast.expr, path: Path) -> Front | None:
        """The front of the list that an expression is; `None` where it is none, or unknown."""
        match node:
            case ast.List(elts=elements):
                front = Front()
                for element in elements:
                    inner = self._front(element.value, path) if isinstance(element, ast.Starred) else Front((self._layer(element, path),))
                    following = front.followed_by(inner)
                    if following is None:
                        return None
                    front = following
                return front
            case ast.Name(id=name):
                return path.lists.get(name)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first = self._front(left, path)
                return first.followed_by(self._front(right, path)) if first else None
            case ast.Subscript(value=value, slice=ast.Slice(lower=ast.Constant(value=int(count)), upper=None, step=None)) if count >= 0:
                front_before = self._front(value, path)
                return front_before.without(count) if front_before else None
        return None

    def _layer(self, element: ast.expr, path: Path) -> ast.expr:
        return path.values.get(element.id, element) if isinstance(element, ast.Name) else element

    def _after_uses(self, node: ast.AST, path: Path) -> Path:
        """The path after something that may have changed lists which it handles in other ways than by reading them."""
        read: set[int] = set()
        for inner in ast.walk(node):
            match inner:
                case ast.Starred(value=value) | ast.Subscript(value=value, ctx=ast.Load()):
                    read.add(id(value))
                case ast.BinOp(left=left, right=right):
                    read |= {id(left), id(right)}
                case ast.Call(func=ast.Name(id="len"), args=[value]):
                    read.add(id(value))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id in path.lists and id(inner) not in read:
                path = path.bind(inner.id, None)
        return path


def _known(test: ast.expr, path: Path) -> ast.Constant | None:
    """What a condition is that compares constants, or is one."""
    match test:
        case ast.Constant():
            return test
        case ast.Name(id=name) if isinstance(value := path.values.get(name), ast.Constant):
            return value
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() as operator], comparators=[right]):
            first, second = _known(left, path), _known(right, path)
            if first is not None and second is not None:
                return ast.Constant((first.value == second.value) == isinstance(operator, (ast.Eq, ast.Is)))
    return None


def _without(decided: Mapping[str, bool], name: str, whole: bool = False) -> dict[str, bool]:
    """The decisions on conditions that do not mention a name; with `whole`, without the condition of that text alone."""
    return {text: outcome for text, outcome in decided.items() if (text != name if whole else name not in _words(text))}


def _words(text: str) -> set[str]:
    return {word for node in ast.walk(ast.parse(text, mode="eval")) if (word := getattr(node, "id", getattr(node, "attr", "")))}
