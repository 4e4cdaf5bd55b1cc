"""Finds what comes to stand in a list, tuple or dictionary: what is written out, and what methods of the class add to it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed

ADDING = frozenset({"append", "insert", "appendleft", "add", "setdefault"})
"""Methods whose last argument becomes an element."""
JOINING = frozenset({"extend", "update"})
"""Methods that add the elements of their argument."""
COPYING = frozenset({"list", "tuple", "dict", "OrderedDict", "reversed", "deque"})
"""Functions that make a container of another one's elements, or an empty one."""


@dataclass
class Contents:
    """Follows containers through the methods of a class and of its relatives in the same file."""

    family: Sequence[ClassModel]
    facts: Facts
    parameters: list[ast.expr] = field(default_factory=list)
    """The elements that are parameters, of all containers asked about."""
    _visited: set[int] = field(default_factory=set)

    def kinds(self, container: ast.expr, function: ast.AST) -> set[str]:
        """The kinds of all elements that are known, however deep they lie."""
        return self._kinds_of(self._elements(container, function))

    def kinds_added(self, name: str) -> set[str]:
        """The kinds of all that the class adds to its attribute."""
        return self._kinds_of(self._added_to_attribute(name))

    def _kinds_of(self, elements: Iterator[ast.expr]) -> set[str]:
        facts = [(element, fact.kinds) for element in elements if (fact := self._fact(element)) is not None]
        self.parameters += [element for element, kinds in facts if "parameter" in kinds]
        return {kind for _, kinds in facts for kind in kinds}

    def _fact(self, node: ast.expr) -> Observed | None:
        return self.facts.observed.get(span_of(node, self.family[0].file.lines))

    def _elements(self, container: ast.expr, function: ast.AST) -> Iterator[ast.expr]:
        if id(container) in self._visited:
            return
        self._visited.add(id(container))
        match container:
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                yield from self._all(parts, function)
            case ast.Dict(values=parts):
                yield from self._all(parts, function)
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part) | ast.DictComp(value=part):
                yield from self._all([part], function)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                yield from self._elements(left, function)
                yield from self._elements(right, function)
            case ast.BinOp(left=left, op=ast.Mult()):
                yield from self._elements(left, function)
            case ast.IfExp(body=one, orelse=other):
                yield from self._elements(one, function)
                yield from self._elements(other, function)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords) if name in COPYING:
                for argument in arguments:
                    yield from self._elements(argument, function)
                yield from self._all([keyword.value for keyword in keywords], function)
            case ast.Call(func=called):
                for method in self._own_methods(called):
                    for node in walk(method):
                        if isinstance(node, ast.Return) and node.value is not None:
                            yield from self._elements(node.value, method)
            case ast.Name(id=name):
                for node in walk(function):
                    if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets):
                        yield from self._elements(node.value, function)
                    yield from self._added(node, function, lambda holder: isinstance(holder, ast.Name) and holder.id == name)

    def _all(self, parts: Sequence[ast.expr], function: ast.AST) -> Iterator[ast.expr]:
        for part in parts:
            inner = part.value if isinstance(part, ast.Starred) else part
            if part is inner:
                yield part
            yield from self._elements(inner, function)

    def _own_methods(self, called: ast.expr) -> list[FunctionNode]:
        names = [model.own.get(id(called)) for model in self.family]
        return [method for name in names if name for model in self.family if (method := model.methods.get(name)) is not None]

    def _added_to_attribute(self, name: str) -> Iterator[ast.expr]:
        for model in self.family:

            def is_attribute(holder: ast.expr, model: ClassModel = model) -> bool:
                return model.own.get(id(holder)) == name

            for method in model.methods.values():
                for node in walk(method):
                    yield from self._added(node, method, is_attribute)
                    # `self.masks = self.masks + [mask]`
                    if isinstance(node, ast.Assign) and is_attribute(node.targets[0]) and any(map(is_attribute, _operands(node.value))):
                        yield from self._elements(node.value, method)

    def _added(self, node: ast.AST, function: ast.AST, is_holder: Callable[[ast.expr], bool]) -> Iterator[ast.expr]:
        """What a statement or call adds to a container, or to one that lies in it: `self.kept[key].append(x)`."""
        match node:
            case ast.Call(func=ast.Attribute(value=holder, attr=name), args=[*_, added]) if is_holder(_outer(holder)):
                if name in ADDING:
                    yield from self._all([added], function)
                elif name in JOINING:
                    yield from self._elements(added, function)
            case ast.AugAssign(target=ast.Attribute() | ast.Name() as holder, op=ast.Add(), value=added) if is_holder(holder):
                yield from self._elements(added, function)
            case ast.Assign(targets=[ast.Subscript(value=holder)], value=added) if is_holder(_outer(holder)):
                yield from self._all([added], function)


def _outer(holder: ast.expr) -> ast.expr:
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    return holder


def _operands(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.BinOp):
        yield from _operands(value.left)
        yield from _operands(value.right)
    else:
        yield value


def adds_later(model: ClassModel, function: ast.AST, name: str, line: int) -> bool:
    """Whether all other reads of a local name below this line of its block add it to containers that the class keeps as attributes."""
    block = next((one for one in _blocks(function) if any(statement.lineno == line for statement in one)), [])
    below = [node for statement in block if statement.lineno > line for node in walk(statement)]
    reads = [node for node in below if isinstance(node, ast.Name) and node.id == name]
    elements_added: list[ast.expr] = []
    for node in below:
        match node:
            case ast.Call(func=ast.Attribute(value=holder, attr=method), args=[*_, element]) if method in ADDING:
                elements_added += [element] if id(_outer(holder)) in model.own else []
            case ast.AugAssign(target=holder, op=ast.Add(), value=ast.List(elts=elements)) if id(holder) in model.own:
                elements_added += elements
            case ast.Assign(targets=[ast.Subscript(value=holder)], value=element) if id(_outer(holder)) in model.own:
                elements_added.append(element)
    return bool(reads) and all(node in elements_added for node in reads)


def _blocks(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in walk(function):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(block, list):
                yield block
