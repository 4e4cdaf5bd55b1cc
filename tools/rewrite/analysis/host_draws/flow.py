"""Follows random numbers of the host through the statements and calls of a repository: what is computed from them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.facts import Facts, is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey, callees_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.tables.host_draws import HOST_DRAWS
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

DTYPES = {"float": "float32", "int": "int64", "bool": "bool"}
"""Kind of a Python number → the dtype of the array that takes its place."""
DRAWN = frozenset({"torch.rand", "torch.randn", "torch.randint", "torch.bernoulli", "torch.rand_like", "torch.randn_like"})
"""Draws of torch that `item()` may read a number out of."""
COMPUTING = frozenset({"float", "int", "bool", "abs", "min", "max", "round", "sum", "divmod", "pow", "sorted", "list", "tuple"})
"""Builtins whose result is computed from their arguments."""


@dataclass
class Draws:
    """What was found in one file."""

    calls: set[Span] = field(default_factory=set)
    """Spans of the callees that draw while a module is called."""
    shared: set[Span] = field(default_factory=set)
    """Spans of the callees that draw in functions which constructors call too."""
    traced: set[Span] = field(default_factory=set)
    """Spans of the expressions whose value follows from such a draw."""


@dataclass
class Flow:
    """What is known of all functions: which parameters, results and attributes follow from draws."""

    repo: Repo
    facts: Mapping[str, Facts]
    draws: dict[str, Draws] = field(default_factory=dict)
    parameters: set[tuple[FunctionKey, str]] = field(default_factory=set)
    attributes: set[tuple[str, str]] = field(default_factory=set)
    results: set[tuple[FunctionKey, int | None]] = field(default_factory=set)
    """(function, place in the tuple that it gives; `None` for the result as a whole)."""

    @property
    def size(self) -> int:
        """Grows with each finding."""
        return len(self.parameters) + len(self.attributes) + len(self.results) + sum(len(found.traced) for found in self.draws.values())

    def find(self, key: FunctionKey, node: FunctionNode, shared: bool) -> None:
        """Note the draws of a function."""
        file, facts = self.repo.files[key[0]], self.facts[key[0]]
        found = self.draws.setdefault(key[0], Draws())
        tests = [child.test for child in walk(node) if isinstance(child, (ast.If, ast.IfExp, ast.While))]
        # A branch on `item()` itself is one on the tensor.
        in_tests = {id(child) for test in tests for child in ast.walk(test)}
        for child in walk(node):
            if isinstance(child, ast.Call) and facts.dotted.get(span := span_of(child.func, file.lines), "") in HOST_DRAWS:
                (found.shared if shared else found.calls).add(span)
            elif isinstance(child, ast.Call) and not shared and id(child) not in in_tests and reads_draw(child, node, facts, file.lines):
                found.calls.add(span_of(child.func, file.lines))


def reads_draw(call: ast.Call, function: ast.AST, facts: Facts, lines: list[str]) -> bool:
    """Whether a call is `item()` of a random tensor of torch: of the draw itself, or of a local name that is bound once, to a draw.

    In functions that constructors call too it stays: they run in Python.
    """
    match call:
        case ast.Call(func=ast.Attribute(value=read, attr="item"), args=[], keywords=[]):
            if isinstance(read, ast.Name):
                values = [node.value for node in walk(function) if isinstance(node, ast.Assign) and _binds(node, read.id)]
                stores = [
                    node for node in walk(function) if isinstance(node, ast.Name) and node.id == read.id and isinstance(node.ctx, ast.Store)
                ]
                read = values[0] if len(values) == len(stores) == 1 else read
            return isinstance(read, ast.Call) and facts.dotted.get(span_of(read.func, lines), "") in DRAWN
    return False


def _binds(node: ast.Assign, name: str) -> bool:
    return len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name


class Walk:
    """One function: the names that follow from draws, in any order of its statements."""

    def __init__(self, flow: Flow, key: FunctionKey, node: FunctionNode, owner: ClassModel | None) -> None:
        self.flow, self.key, self.node, self.owner = flow, key, node, owner
        self.file, self.facts = flow.repo.files[key[0]], flow.facts[key[0]]
        self.found = flow.draws.setdefault(key[0], Draws())
        self.names = {name for function, name in flow.parameters if function == key}

    def run(self) -> None:
        """Walk the statements until no name is added."""
        count = -1
        while count != len(self.names):
            count = len(self.names)
            for statement in self.node.body:
                self.statement(statement, False)

    # -- statements -------------------------------------------------------------------------------------------------
    def statement(self, node: ast.AST, decided: bool) -> None:
        """One statement; `decided`: it stands in a branch on a random number, so that what it assigns follows from that too."""
        match node:
            case ast.Assign(targets=targets, value=value):
                traced = self.value(value)
                for target in targets:
                    self.bind(target, value, traced or decided)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, value, self.value(value) or decided)
            case ast.AugAssign(target=target, value=value):
                self.bind(target, value, self.value(value) or self.value(target) or decided)
            case ast.Return(value=ast.expr() as value):
                self.result(value)
            case ast.If(test=test, body=body, orelse=orelse) | ast.While(test=test, body=body, orelse=orelse):
                inside = self.value(test) or decided
                for part in (*body, *orelse):
                    self.statement(part, inside)
            case ast.For(target=target, iter=iterable):
                self.bind(target, iterable, self.value(iterable))
                for part in (*node.body, *node.orelse):
                    self.statement(part, decided)
            case ast.expr():
                self.value(node)
            case _:
                for child in ast.iter_child_nodes(node):
                    self.statement(child, decided)

    def bind(self, target: ast.expr, value: ast.expr, traced: bool) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
            for place, element in enumerate(target.elts):
                own = self.value(parts[place]) if parts else traced or (isinstance(value, ast.Call) and self.returned(value, place))
                self.bind(element, parts[place] if parts else value, own)
        elif traced and is_number(self.observed(target)):
            if isinstance(target, ast.Name):
                self.names.add(target.id)
                self.found.traced.add(span_of(target, self.file.lines))
            elif isinstance(target, ast.Attribute) and self.owner and id(target) in self.owner.own:
                self.flow.attributes.add((self.owner.id, target.attr))

    def result(self, value: ast.expr) -> None:
        if isinstance(value, ast.Tuple):
            self.flow.results |= {(self.key, place) for place, element in enumerate(value.elts) if self.value(element)}
        elif self.value(value):
            self.flow.results.add((self.key, None))

    # -- expressions ------------------------------------------------------------------------------------------------
    def observed(self, node: ast.expr) -> Observed | None:
        return self.facts.observed.get(span_of(node, self.file.lines))

    def value(self, node: ast.expr) -> bool:
        """Whether an expression is a number, or an array or a list of numbers, that follows from a draw. What a tensor is part of is a tensor already."""
        traced = self.follows(node)
        fact = self.observed(node)
        if not traced or is_tensor(fact) or not is_number(fact):
            return False
        self.found.traced.add(span_of(node, self.file.lines))
        return True

    def follows(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.names
            case ast.Attribute(value=value, attr=name):
                kept = self.owner is not None and id(node) in self.owner.own and (self.owner.id, name) in self.flow.attributes
                return (self.value(value) and name == "T") or kept
            case ast.Call():
                return self.call(node)
            case ast.Compare(ops=ops) if any(isinstance(op, (ast.Is, ast.IsNot)) for op in ops):
                return False
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.IfExp() | ast.Subscript():
                return self.some(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
            case ast.NamedExpr(target=target, value=value):
                traced = self.value(value)
                self.bind(target, value, traced)
                return traced
            case ast.Slice():
                return self.some(bound for bound in (node.lower, node.upper, node.step) if bound is not None)
            case _:
                for child in ast.iter_child_nodes(node):
                    self.statement(child, False)
                return False

    def some(self, nodes: Iterable[ast.expr]) -> bool:
        # Each is looked at: the expressions inside are noted too.
        values = [self.value(node) for node in nodes]
        return any(values)

    def call(self, node: ast.Call) -> bool:
        func = node.func
        arguments = [(argument, self.value(argument)) for argument in (*node.args, *(keyword.value for keyword in node.keywords))]
        receiver = isinstance(func, ast.Attribute) and self.value(func.value)
        if (span := span_of(func, self.file.lines)) in self.found.calls:
            return True
        if keys := self.callees(node):
            self.hand_over(node, keys)
            return any((key, None) in self.flow.results for key in keys)
        if receiver:
            return True
        dotted = self.facts.dotted.get(span, "")
        computed = isinstance(func, ast.Name) and func.id in COMPUTING and not dotted
        return (computed or dotted.startswith(("math.", "numpy."))) and any(traced for _, traced in arguments)

    def callees(self, node: ast.Call) -> Set[FunctionKey]:
        return callees_of(self.flow.repo, self.file, self.facts, self.key, self.owner, node)

    def returned(self, node: ast.Call, place: int) -> bool:
        return any((key, place) in self.flow.results for key in self.callees(node))

    def hand_over(self, node: ast.Call, keys: Iterable[FunctionKey]) -> None:
        """Note the parameters that get random numbers."""
        for key in keys:
            function = self.flow.repo.files[key[0]].functions.get(key[1])
            if function is None:
                continue
            names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
            names = names[1:] if names[:1] == ["self"] else names
            places: list[tuple[str, ast.expr]] = [*zip(names, node.args, strict=False)]
            places += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
            self.flow.parameters |= {(key, name) for name, value in places if self.value(value)}


def is_number(fact: Observed | None) -> bool:
    """Whether a value may be a number, or an array or a list of numbers; an unknown one may."""
    return fact is None or all(kind in DTYPES or kind in ("ndarray", "list") or kind.startswith("object:numpy.") for kind in fact.kinds)
