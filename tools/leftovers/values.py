"""What functions give and attributes hold, by following the statements of JAX source in order."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from migrate_agent.tools.leftovers.kinds import (
    ARRAY,
    ARRAY_METHODS,
    DECLARED,
    UPDATES,
    VARIABLE,
    Kind,
    element,
    is_array,
    join,
    of_call,
)
from migrate_agent.tools.leftovers.program import Definition, File, Function, Program

Names = dict[str, Kind | None]
NONE = Kind("none")
ANNOTATIONS = ("jax.Array", "jax.numpy.ndarray", "jaxlib.xla_extension.ArrayImpl")
LOOKS = ("isinstance", "hasattr", "getattr", "type", "callable", "issubclass")
"""Functions that ask what a value is: whoever asks knows more than this analysis."""
PARTS = ("T", "mT", "real", "imag")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class Values:
    """What calling the definitions of a program gives, and what the attributes of its classes hold; each is found once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._returns: dict[int, Kind | None] = {}
        self._attributes: dict[int, Names] = {}

    def called(self, kind: Kind | None) -> Kind | None:
        """What calling a value of this kind gives."""
        match kind:
            case Kind(name="layer"):
                return ARRAY
            case Kind(name="class", key=key):
                return Kind("instance", key=key)
            case Kind(name="function", key=key):
                return self.returned(self.program.definitions[key])
            case Kind(name="instance", key=key):
                return self.method(self.program.definitions[key], "__call__")
        return None

    def method(self, definition: Definition, name: str) -> Kind | None:
        """What a method of an instance of a class gives. None where a class derives from it, since that may have another."""
        if self.program.derived(definition):
            return None
        for one in self.program.line(definition):
            if function := one.methods.get(name):
                plain = all(isinstance(d, ast.Name) and d.id == "no_grad" for d in function.decorator_list)
                return self.returned(Definition(one.file, function, one)) if plain else None
        last = self.program.line(definition)[-1]
        outside = [of_call(last.file.dotted(base)) for base in last.bases]
        return ARRAY if name == "__call__" and any(kind and kind.name == "layer" for kind in outside) else None

    def returned(self, definition: Definition) -> Kind | None:
        """What a function gives on every way out of it; None where that is not known."""
        node = definition.node
        if id(node) not in self._returns:
            self._returns[id(node)] = None  # a function that calls itself says nothing about itself
            generates = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node))
            decorated = definition.owner is None and bool(node.decorator_list)
            if isinstance(node, ast.FunctionDef) and not generates and not decorated:
                self._returns[id(node)] = Flow(self, definition).returned()
        return self._returns[id(node)]

    def attribute(self, definition: Definition, name: str) -> Kind | None:
        """What `self.name` is wherever the class, or one that it derives from, assigns it."""
        every = [kinds[name] for one in self.program.line(definition) if name in (kinds := self._stored(one))]
        return every[0] if every and all(kind == every[0] for kind in every) and not self.program.derived(definition) else None

    def _stored(self, definition: Definition) -> Names:
        if id(definition.node) not in self._attributes:
            self._attributes[id(definition.node)] = {}
            kinds: Names = {}
            # What is found while the attributes are not all known is right, but less than can be known.
            certain, self._returns = self._returns, dict(self._returns)
            for function in definition.methods.values():
                flow = Flow(self, Definition(definition.file, function, definition))
                for attribute, kind in flow.stored() if _stores(function) else ():
                    kinds[attribute] = join(kinds[attribute], kind) if attribute in kinds else kind
            self._returns = certain
            self._attributes[id(definition.node)] = kinds
        return self._attributes[id(definition.node)]


def _stores(function: Function) -> bool:
    return any(isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) for node in ast.walk(function))


class Flow:
    """The statements of one function in order, with the kinds of its local names.

    `look` is called with each expression and statement that can be reached, once the kinds that hold there are known.
    """

    def __init__(
        self, values: Values, definition: Definition, look: Callable[[ast.AST, Flow], None] | None = None, outer: Names | None = None
    ) -> None:
        self.values, self.definition, self.look = values, definition, look
        self.file: File = definition.file
        self.names: Names = dict(outer or {})
        self._results: list[Kind | None] = []
        self._stored: list[tuple[str, Kind | None]] = []
        self._exits: list[list[Names]] = []
        node = definition.node
        self._bound = Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
        self._bound.update(name for n in ast.walk(node) if isinstance(n, (ast.Nonlocal, ast.Global)) for name in (*n.names, *n.names))
        self._bound.update(a.arg for n in ast.walk(node) if isinstance(n, ast.arguments) for a in every_argument(n))
        for name in self._bound:
            self.names[name] = None
        if isinstance(node, Function):
            self._bind_arguments(node)

    def run(self) -> None:
        """Follow the function."""
        self._falls_through = self.block(self.definition.node.body)

    def returned(self) -> Kind | None:
        """What the function gives on every way out."""
        self.run()
        results = [*self._results, *([NONE] if self._falls_through else [])]
        kind = results[0] if results else None
        for other in results[1:]:
            kind = join(kind, other)
        return None if kind == NONE else kind

    def stored(self) -> Sequence[tuple[str, Kind | None]]:
        """Each attribute of `self` that the function assigns, with the kind that it gets."""
        self.run()
        return self._stored

    def _bind_arguments(self, node: Function) -> None:
        for argument in every_argument(node.args):
            annotation = ast.unparse(argument.annotation).strip("'\"") if argument.annotation else ""
            head, _, rest = annotation.partition(".")
            dotted = ".".join(filter(None, (self.file.imports.get(head, ""), rest)))
            self.names[argument.arg] = DECLARED if dotted in ANNOTATIONS else None
        owner, first = self.definition.owner, [*node.args.posonlyargs, *node.args.args][:1]
        static = any(isinstance(d, ast.Name) and d.id in ("staticmethod", "classmethod") for d in node.decorator_list)
        if owner and first and not static and self.values.program.definitions.get(owner.node.name) == owner:
            self.names[first[0].arg] = Kind("instance", key=owner.node.name)

    # -- statements -------------------------------------------------------------------------------------------------
    def block(self, body: Iterable[ast.stmt]) -> bool:
        """Follow statements; False where the last one is never passed."""
        return all(self.statement(statement) for statement in body)

    def statement(self, node: ast.stmt) -> bool:
        """Follow one statement; False where nothing comes after it."""
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._see(child)
            self._show(node)
        match node:
            case ast.Assign():
                kind = self.kind(node.value)
                for target in node.targets:
                    self.bind(target, kind)
            case ast.AnnAssign(value=ast.expr() as value):
                self.bind(node.target, self.kind(value))
            case ast.AugAssign(target=ast.Name(id=name)):
                self.names[name] = (
                    self.kind(ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)) if is_array(self.names.get(name)) else None
                )
            case ast.AugAssign():
                self.bind(node.target, None)
            case ast.Return():
                self._results.append(self.kind(node.value) if node.value else NONE)
                return False
            case ast.Raise():
                return False
            case ast.Break() | ast.Continue():
                if self._exits:
                    self._exits[-1].append(dict(self.names))
                return False
            case ast.If():
                return self._branches(node.test, [node.body, node.orelse])
            case ast.For() | ast.AsyncFor():
                kind = self.kind(node.iter)
                return self._loop(node, lambda: self.bind(node.target, ARRAY if kind and kind.name in ("array", "arrays") else None))
            case ast.While():
                return self._loop(node, lambda: None) and not _endless(node)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars:
                        self.bind(item.optional_vars, None)
                return self.block(node.body)
            case ast.Try() | ast.TryStar():
                return self._try(node)
            case ast.Match():
                return self._branches(node.subject, [*(case.body for case in node.cases), []])
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._inner(node)
        return True

    def _branches(self, test: ast.expr, bodies: Sequence[list[ast.stmt]]) -> bool:
        before, ends = self._without(looked_at(test)), []
        for body in bodies:
            self.names = dict(before)
            if self.block(body):
                ends.append(self.names)
        self.names = joined(ends) if ends else before
        return bool(ends)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, begin: Callable[[], None]) -> bool:
        """Follow a loop: in silence until the kinds at its start hold for every turn, then once more to show them."""
        look, self.look = self.look, None
        start = self.names
        results, stored = len(self._results), len(self._stored)
        while True:
            after = joined([start, *self._turn(node, start, begin)])
            del self._results[results:], self._stored[stored:]
            if after == start:
                break
            start = after
        self.look = look
        self.names = joined([start, *self._turn(node, start, begin)])
        return self.block(node.orelse)

    def _turn(self, node: ast.For | ast.AsyncFor | ast.While, start: Names, begin: Callable[[], None]) -> list[Names]:
        """One turn of a loop: the kinds at each place where it ends."""
        self.names = dict(start)
        self._exits.append([])
        begin()
        passed = self.block(node.body)
        return [*self._exits.pop(), *([self.names] if passed else [])]

    def _try(self, node: ast.Try | ast.TryStar) -> bool:
        before = self.names
        self.names = dict(before)
        passed = self.block(node.body) and self.block(node.orelse)
        ends = [self.names] if passed else []
        # An error may come anywhere in the body.
        during = joined([before, self.names])
        for handler in node.handlers:
            self.names = {**during, **({handler.name: None} if handler.name else {})}
            if self.block(handler.body):
                ends.append(self.names)
        self.names = joined(ends) if ends else during
        return self.block(node.finalbody) and bool(ends)

    def _inner(self, node: Function) -> None:
        """A function within the function sees what its names stand for throughout."""
        constant: Names = {name: kind for name, kind in self.names.items() if self._bound[name] == 1 and kind}
        if self.look:
            Flow(self.values, Definition(self.file, node), self.look, constant).run()

    def bind(self, target: ast.expr, kind: Kind | None) -> None:
        """Note what an assignment gives its target."""
        match target:
            case ast.Name(id=name):
                self.names[name] = kind
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                starred = any(isinstance(one, ast.Starred) for one in elements)
                for index, one in enumerate(elements):
                    self.bind(one, None if starred else element(kind, index, len(elements)))
            case ast.Starred(value=value):
                self.bind(value, None)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if (self.names.get(name) or NONE).name == "instance":
                self._stored.append((attribute, kind))

    def _without(self, names: Iterable[str]) -> Names:
        return {**self.names, **dict.fromkeys(names)}

    # -- expressions ------------------------------------------------------------------------------------------------
    def _show(self, node: ast.AST) -> None:
        if self.look:
            self.look(node, self)

    def _see(self, node: ast.AST) -> None:
        """Show an expression and all inside it, and bind what `:=` binds."""
        before = self.names
        if isinstance(node, COMPREHENSIONS):
            targets = {n.id for one in node.generators for n in ast.walk(one.target) if isinstance(n, ast.Name)}
            self.names = self._without(targets)
        elif isinstance(node, ast.Lambda):
            self.names = self._without(argument.arg for argument in every_argument(node.args))
        elif isinstance(node, (ast.BoolOp, ast.IfExp)):
            self.names = self._without(looked_at(node))
        self._show(node)
        for child in ast.iter_child_nodes(node):
            self._see(child)
        self.names = before
        if isinstance(node, ast.NamedExpr):
            self.bind(node.target, self.kind(node.value))

    def kind(self, node: ast.expr) -> Kind | None:
        """What an expression is here, for sure."""
        match node:
            case ast.Name(id=name):
                return self.names[name] if name in self.names else self.values.program.named(self.file, name)
            case ast.Attribute():
                return self._of_attribute(node)
            case ast.Call():
                return self._of_call(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._of_operator(left, op, right)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
                return ARRAY if is_array(self.kind(operand)) else None
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                named = isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn))
                return None if named else self._of_operator(left, ast.Add(), right)
            case ast.Subscript(value=value):
                base = self.kind(value)
                whole = isinstance(node.slice, ast.Constant) and node.slice.value is ...
                return ARRAY if (base == VARIABLE and whole) or is_array(base) else None
            case ast.IfExp(body=body, orelse=orelse):
                return join(self.kind(body), self.kind(orelse))
            case ast.Tuple(elts=elements) if not any(isinstance(one, ast.Starred) for one in elements):
                return Kind("tuple", tuple(map(self.kind, elements)))
            case ast.NamedExpr(value=value):
                return self.kind(value)
        return None

    def _of_attribute(self, node: ast.Attribute) -> Kind | None:
        base = self.kind(node.value)
        if base and base.name == "instance":
            return self.values.attribute(self.values.program.definitions[base.key], node.attr)
        return ARRAY if is_array(base) and node.attr in PARTS else None

    def _of_operator(self, left: ast.expr, op: ast.operator, right: ast.expr) -> Kind | None:
        first, second = self.kind(left), self.kind(right)
        # `text % array` is a text.
        arrays = is_array(first) or (is_array(second) and not isinstance(op, ast.Mod))
        return ARRAY if arrays else None

    def _of_call(self, node: ast.Call) -> Kind | None:
        dotted = self.file.dotted(node.func) if not self._is_local(node.func) else ""
        if dotted == "jax.numpy.where":
            return ARRAY if len(node.args) == 3 else None
        if kind := of_call(dotted):
            return kind if kind != VARIABLE or (node.args and self.kind(node.args[0]) == ARRAY) else None
        if isinstance(node.func, ast.Attribute):
            base = self.kind(node.func.value)
            if is_array(base) and node.func.attr in ARRAY_METHODS:
                return ARRAY
            if (
                base
                and base.name == "instance"
                and self.values.attribute(self.values.program.definitions[base.key], node.func.attr) is None
            ):
                return self.values.method(self.values.program.definitions[base.key], node.func.attr)
            match node.func:
                case ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at")), attr=attr) if attr in UPDATES:
                    return ARRAY
        return self.values.called(self.kind(node.func))

    def _is_local(self, node: ast.expr) -> bool:
        """Whether a dotted name starts with a local name."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.names


def every_argument(arguments: ast.arguments) -> Iterator[ast.arg]:
    """All arguments of a function."""
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (one for one in (arguments.vararg, arguments.kwarg) if one)


def joined(every: Sequence[Names]) -> Names:
    """What holds of a name on all of several ways."""
    result = dict(every[0])
    for names in every[1:]:
        for name in {*result, *names}:
            result[name] = join(result.get(name), names.get(name))
    return result


def looked_at(test: ast.AST) -> frozenset[str]:
    """Names that a test asks for what they are (`isinstance(x, …)`)."""
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOKS]
    return frozenset(name.id for call in calls for name in ast.walk(call) if isinstance(name, ast.Name))


def _endless(node: ast.While) -> bool:
    stops = any(isinstance(one, ast.Break) for one in ast.walk(node))
    return isinstance(node.test, ast.Constant) and bool(node.test.value) and not stops
