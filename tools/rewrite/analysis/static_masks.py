"""Finds tensors whose values are known while JAX traces a function, since they are made from Python
numbers: `~torch.eye(n).bool()`.

If such a mask is computed at trace time (`jax.ensure_compile_time_eval`), the shape of what it
selects is known too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.facts import Facts, is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.randomness import draws
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.tables.registry import methods, ops
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

NUMBERS = frozenset({"int", "float", "bool", "str", "none", "dtype", "device", "size"})
"""Kinds of values that are Python values while a function is traced."""
OF_SHAPE = frozenset({"shape", "ndim", "dtype", "device", "is_cuda", "itemsize"})
SHAPES = frozenset({"size", "dim", "numel", "ndimension", "nelement", "get_device", "element_size"})
"""Methods of a tensor that depend on its shape and dtype alone, as the attributes of `OF_SHAPE` do."""
PURE = frozenset({"len", "int", "float", "bool", "range", "min", "max", "abs", "sum", "list", "tuple", "enumerate", "zip", "reversed"})
TYPES = frozenset({"bool", "int", "float"})
VALUES = frozenset({"item", "tolist", "numpy", "any", "all"})
PARTS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Tuple, ast.List, ast.Slice, ast.Starred, ast.keyword)


class Selections(NamedTuple):
    """`indices`: spans of the known boolean masks. `names`: local tensors that must be computed at
    trace time. `numbers`: spans of known tensors of which Python asks the values (`int(…)`, `item()`). `selecting`: spans of
    the known tensors whose places are asked for (`nonzero()`).
    """

    indices: frozenset[Span]
    names: frozenset[str]
    numbers: frozenset[Span] = frozenset()
    selecting: frozenset[Span] = frozenset()


NOTHING = Selections(frozenset(), frozenset())
READERS = frozenset({"int", "float", "range"})
READING_METHODS = frozenset({"item", "tolist"})
PLACES = frozenset({"nonzero", "argwhere"})
"""Functions and methods that give the places of what is not zero, as `torch.where` of a condition alone does."""
COUNTING = frozenset({"torch.unique", "torch.unique_consecutive"})
"""Functions of which the size of the result is up to the values of the first argument."""
SIZED = frozenset(f"torch.{name}" for name in ("arange", "zeros", "ones", "empty", "eye", "rand", "randn", "linspace"))
"""Functions whose positional arguments say how large a new tensor is, or what numbers are in it."""


@dataclass
class StaticValues:
    """Tells which expressions of one function have values that are known at trace time."""

    repo: Repo
    file: FileModel
    facts: Facts
    function: FunctionNode
    model: ClassModel | None
    parameters: bool = False
    """Whether the parameters of the function count as known."""
    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    """Local name → the expressions that it is bound to or changed by."""
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name, value in _bound(self.function):
            self.values.setdefault(name, []).append(value)
        arguments = self.function.args
        parameters = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        self.names = {name for name in self.values if name not in parameters or self.parameters} | (
            parameters if self.parameters else set()
        )
        # Greatest fixed point: all names count as known until one of their values is not.
        while lost := {name for name in self.names if not all(self.known(value) for value in self.values.get(name, ()))}:
            self.names -= lost

    def selections(self) -> Selections:
        """The selections by known masks in the function, and the names that the masks are made of."""
        spans, used = set(), set[str]()
        for node in walk(self.function):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and self._selects(node.slice) and self.known(node.slice):
                spans.add(span_of(node.slice, self.file.lines))
                used |= self._tensors(node.slice)
        numbers = {span_of(value, self.file.lines): value for value in self._asked() if self.known(value)}
        places = [node for node in walk(self.function) if isinstance(node, ast.Call) and self._known_places(node)]
        selecting = {span_of(value, self.file.lines): value for node in places for value in self._searched(node)}
        for value in (*numbers.values(), *selecting.values()):
            used |= self._tensors(value)
        while more := {name for local in used for value in self.values.get(local, ()) for name in self._tensors(value)} - used:
            used |= more
        if not (spans or numbers or selecting):
            return NOTHING
        return Selections(frozenset(spans), frozenset(used), frozenset(numbers), frozenset(selecting))

    def _searched(self, call: ast.Call) -> list[ast.expr]:
        """The tensor of which a call gives the places that are not zero; empty for another call."""
        dotted = self.dotted(call.func)
        if dotted in {f"torch.{name}" for name in PLACES} or (dotted == "torch.where" and len(call.args) == 1):
            return call.args[:1]
        match call.func:
            case ast.Attribute(value=value, attr=attr) if attr in PLACES and not dotted and is_tensor(self.observed(value)):
                return [value]
        return []

    def _known_places(self, call: ast.Call) -> bool:
        searched = self._searched(call)
        return bool(searched) and all(self.known(value) for value in searched)

    def _asked(self) -> Iterator[ast.expr]:
        """The tensors of which Python asks the values."""
        for node in walk(self.function):
            if isinstance(node, ast.Call):
                yield from (value for value in values_asked(node, self.dotted(node.func)) if is_tensor(self.observed(value)))
            elif isinstance(node, ast.For) and is_tensor(self.observed(node.iter)) and self._takes_numbers(node):
                yield node.iter

    def _takes_numbers(self, loop: ast.For) -> bool:
        """Whether a loop over a tensor cuts lists by its elements, and asks them for no attribute or method, which numbers do not have."""
        name = loop.target.id if isinstance(loop.target, ast.Name) else ""
        inside = [node for statement in loop.body for node in ast.walk(statement)]
        asked = any(isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name for node in inside)
        parts = [node for node in inside if isinstance(node, ast.Subscript) and self._is_list(node.value)]
        return not asked and any(isinstance(node, ast.Name) and node.id == name for part in parts for node in ast.walk(part.slice))

    def _is_list(self, node: ast.expr) -> bool:
        fact = self.observed(node)
        return fact is not None and bool(fact.kinds) and set(fact.kinds) <= {"list", "tuple"}

    def dotted(self, node: ast.expr) -> str:
        """The dotted name that an expression stands for, or ""."""
        return self.facts.dotted.get(span_of(node, self.file.lines), "")

    def observed(self, node: ast.expr) -> Observed | None:
        """What an expression was seen to be."""
        return self.facts.observed.get(span_of(node, self.file.lines))

    def _selects(self, index: ast.expr) -> bool:
        fact = self.facts.observed.get(span_of(index, self.file.lines))
        # Observed dtypes decide; the spelling below is for code that no example ran.
        if fact is not None and fact.dtypes:
            return is_tensor(fact) and set(fact.dtypes) == {"bool"} and any(fact.shapes)
        return (fact is None or is_tensor(fact)) and self._boolean(index)

    def _boolean(self, node: ast.expr, visited: frozenset[str] = frozenset()) -> bool:
        """Whether the spelling of an expression makes it boolean. `visited`: names on the way here,
        against circles.
        """
        match node:
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._boolean(operand, visited)
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
                return self._boolean(left, visited) and self._boolean(right, visited)
            case ast.Call(func=ast.Attribute(attr="bool"), args=[]):
                return True
            case ast.Call(keywords=keywords):
                return any(k.arg == "dtype" and ast.unparse(k.value) in ("bool", "torch.bool") for k in keywords)
            case ast.Name(id=name) if name in self.values and name not in visited:
                return self._boolean(self.values[name][0], visited | {name})
        return isinstance(node, ast.Compare)

    def _tensors(self, value: ast.expr) -> set[str]:
        return {node.id for node in walk(value) if isinstance(node, ast.Name) and node.id in self.names and not self._number(node)}

    def _number(self, node: ast.expr) -> bool:
        fact = self.facts.observed.get(span_of(node, self.file.lines))
        return fact is not None and set(fact.kinds) <= NUMBERS

    def known(self, node: ast.AST) -> bool:
        """Whether the value of an expression is known at trace time."""
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return name in self.names if name in self.values else name in self.names or name in TYPES or self._number(node)
            case ast.Attribute(value=value, attr=attr):
                if attr in OF_SHAPE and is_tensor(self.facts.observed.get(span_of(value, self.file.lines))):
                    return True
                if self.model is not None and id(node) in self.model.own:
                    # An attribute that a call may change is baked in at its first value otherwise.
                    return self._number(node) and self._set_once(attr)
                return self.facts.dotted.get(span_of(node, self.file.lines), "").startswith("torch.") or (
                    attr in ("T", "mT") and self.known(value)
                )
            case ast.Subscript(value=value, slice=index):
                return self.known(value) and self.known(index)
            case ast.ListComp(elt=part, generators=[ast.comprehension(target=ast.Name(id=name), iter=source, ifs=[])]):
                # The shapes of what a list holds are known, whatever it holds.
                return name not in self.values and (self._within(part, name) if self.known(source) else self.known(part))
            case ast.Call():
                return self._call(node)
        return isinstance(node, PARTS) and all(
            self.known(child) for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.keyword))
        )

    def _within(self, part: ast.expr, name: str) -> bool:
        """Whether an expression is known if the variable of its comprehension is."""
        before = name in self.names
        self.names.add(name)
        try:
            return self.known(part)
        finally:
            if not before:
                self.names.discard(name)

    def _call(self, node: ast.Call) -> bool:
        arguments_known = all(self.known(argument) for argument in (*node.args, *node.keywords))
        dotted = self.facts.dotted.get(span_of(node.func, self.file.lines), "")
        if dotted in ops():
            # A random mask differs between calls although its arguments are known.
            return arguments_known and not draws(ops()[dotted])
        if dotted.startswith("numpy.") and not dotted.startswith("numpy.random."):
            return arguments_known
        match node.func:
            case ast.Name(id="len") if len(node.args) == 1 and is_tensor(self.observed(node.args[0])):
                return True
            case ast.Name(id=name) if name in PURE and not dotted:
                return arguments_known
            case ast.Attribute(value=ast.Name()) if self.model is not None and id(node.func) in self.model.own:
                return arguments_known and self._own(node.func.attr)
            case ast.Attribute(value=value, attr=attr):
                tensor = is_tensor(self.facts.observed.get(span_of(value, self.file.lines)))
                if tensor and attr in SHAPES:
                    return True
                row = methods().get(attr) or methods().get(attr.removesuffix("_"))
                allowed = attr in VALUES or (row is not None and not draws(row))
                return arguments_known and tensor and allowed and self.known(value)
        return False

    def _own(self, name: str) -> bool:
        """Whether a method of the class is a pure function of its arguments."""
        assert self.model is not None
        method = self.model.methods.get(name)
        if (
            method is None
            or method is self.function
            or name in {m.name for c in self.repo.descendants.get(self.model.id, ()) for m in c.methods.values()}
        ):
            return False
        stores = [n for n in walk(method) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)]
        results = [n.value for n in walk(method) if isinstance(n, ast.Return)]
        if stores or not results or any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.FunctionDef)) for n in walk(method)[1:]):
            return False
        inside = StaticValues(self.repo, self.file, self.facts, method, self.model, parameters=True)
        return all(value is not None and inside.known(value) for value in results)

    def _set_once(self, name: str) -> bool:
        """Whether no method but the constructors sets an attribute."""
        assert self.model is not None
        family = (*self.repo.ancestors(self.model), *self.repo.descendants.get(self.model.id, ()))
        calls = [method for model in family for method in model.methods.values() if method.name != "__init__"]
        return not any(isinstance(n, ast.Attribute) and n.attr == name and not isinstance(n.ctx, ast.Load) for m in calls for n in walk(m))


def values_asked(call: ast.Call, dotted: str) -> list[ast.expr]:
    """The parts of a call of which Python needs the values: `x` of `int(x)`, `x.item()`, `math.sqrt(x)` and `torch.arange(x)`."""
    match call.func:
        case ast.Name(id=name) if name in READERS and not dotted:
            return call.args
        case ast.Attribute(value=value, attr=attr) if attr in READING_METHODS and not call.args:
            return [value]
    if dotted in COUNTING:
        return call.args[:1]
    return call.args if dotted in SIZED or dotted.startswith("math.") else []


def _bound(function: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    """(local name, expression that binds or changes it). A lambda, which is never known, stands for
    a binding without expression.
    """
    unknown: ast.expr = ast.Lambda(args=ast.arguments([], [], None, [], [], None, []), body=ast.Constant(None))
    plain: set[int] = set()
    for node in walk(function):
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                plain.add(id(target))
                yield target.id, value
            case (
                ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name() as target, value=value)
            ):
                plain.add(id(target))
                yield target.id, value
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=index)], value=value):
                yield name, index
                yield name, value
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name))) as call):
                yield name, call
            case ast.For(target=ast.Name() as target, iter=source):
                plain.add(id(target))
                yield target.id, source
            case ast.comprehension(target=ast.Name() as target):
                plain.add(id(target))
    own = {id(argument) for argument in walk(function.args) if isinstance(argument, ast.arg)}
    for node in walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in plain:
            yield node.id, unknown
        elif isinstance(node, ast.arg) and id(node) not in own:  # of a function inside
            yield node.arg, unknown


def _may_need_values(node: ast.AST) -> bool:
    """Whether a node selects by something that may be a mask, or may ask for the values of a tensor."""
    match node:
        case ast.Subscript(slice=ast.Name() | ast.UnaryOp() | ast.Call() | ast.Compare()):
            return True
        case ast.For():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in READERS
        case ast.Call(func=ast.Attribute(value=value, attr=attr)):
            module = isinstance(value, ast.Name) and value.id in ("torch", "math")
            return attr in READING_METHODS or attr in PLACES or module
    return False


def selections(
    repo: Repo, file: FileModel, facts: Facts, function: FunctionNode, models: Mapping[str, ClassModel], owner: str
) -> Selections:
    """The selections of a function; `owner` is the qualified name of its class, or ""."""
    if not any(_may_need_values(node) for node in walk(function)):
        return NOTHING
    return StaticValues(repo, file, facts, function, models.get(owner)).selections()
