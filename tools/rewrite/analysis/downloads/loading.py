"""Statements that do nothing but make, change and load a state dictionary that is downloaded. Reads syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from migrate_agent.tools.scan.nodes import walk

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
DOWNLOADS = frozenset(
    """
    torch.hub.load_state_dict_from_url torch.utils.model_zoo.load_url
    torchvision.models.utils.load_state_dict_from_url torchvision._internally_replaced_utils.load_state_dict_from_url
    """.split()
)
"""Functions that give the state dictionary of an address."""
PUTTING_IN = frozenset({"update", "setdefault", "append", "extend", "insert", "add"})
"""Methods of a collection, after which it holds what they are given."""
READS = frozenset({"state_dict", "named_parameters", "named_buffers"})
"""Methods of a module that give its tensors by name."""
BUILTINS = frozenset("dict enumerate isinstance len list max min range set sorted str sum tuple zip".split())
FUNCTIONS = frozenset({"collections.OrderedDict", "copy.copy", "copy.deepcopy", "torch.device", "torch.cuda.is_available"})
TEXT_FUNCTIONS = ("re.", "os.path.")
IMPURE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
LOGGING = frozenset({"debug", "info", "warning", "warn", "error", "critical", "log", "exception"})


@dataclass(frozen=True)
class Names:
    """What names of a file mean: the dotted name that an expression stands for, or "", and whether it is a module, or a function that tells people something."""

    dotted: Callable[[ast.expr], str]
    is_module: Callable[[ast.expr], bool]
    is_report: Callable[[ast.expr], bool]
    gives_download: Callable[[ast.expr], bool] = lambda function: False
    """Whether a function of the repository does nothing but give a download (`download_methods`)."""

    def is_download(self, node: ast.AST) -> bool:
        """Whether a node is the call that gives the state dictionary of an address."""
        return isinstance(node, ast.Call) and (self.dotted(node.func) in DOWNLOADS or self.gives_download(node.func))


def reports(tree: ast.Module, function: ast.expr, dotted: Callable[[ast.expr], str]) -> bool:
    """Whether a function is `print`, or a method of a logger that the file makes."""
    if isinstance(function, ast.Name) and function.id == "print":
        return not dotted(function)
    if not isinstance(function, ast.Attribute) or function.attr not in LOGGING:
        return False
    assignments = [
        statement
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and dotted(statement.value.func) == "logging.getLogger"
    ]
    loggers = {ast.unparse(target) for statement in assignments for target in statement.targets}
    return dotted(function).startswith(("logging.", "warnings.")) or ast.unparse(function.value) in loggers


class Loading:
    """The statements of a function that do nothing but make, change and load a state dictionary that is downloaded."""

    def __init__(self, function: FunctionNode, names: Names) -> None:
        self._function, self._means = function, names
        self._names: set[str] = set()
        """Local names for the dictionary, for what is taken from it, and for what it is put into."""

    @cached_property
    def statements(self) -> tuple[ast.stmt, ...]:
        """The outermost of them; none where anything else depends on the download."""
        self._names |= {name for name in self._local if all(map(self._gives_state, self._assignments(name)))}
        try:
            while self._follow() or self._follow_back(tuple(self._collect(self._function.body))):
                pass
            statements = tuple(self._collect(self._function.body))
        except _OtherUse:
            return ()
        is_given = any(_is_read_first(name, self._function.body, False) for name in self._names & self._parameters)
        return () if is_given or self._copies_state(statements) else statements

    def _gives_state(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and self._is_read(statement.value)

    def _copies_state(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether the statements may load the state of one module into another."""
        calls = [part for statement in statements for part in walk(statement) if isinstance(part, ast.Call)]
        read = {_owner(call) for call in calls if self._is_read(call)}
        return bool(read) and len(read | {_owner(call) for call in calls if self._is_load(call)}) > 1

    def _follow(self) -> bool:
        """Add the names that values of the download reach. Returns whether there are new ones."""
        before = len(self._names)
        for node in walk(self._function):
            match node:
                case ast.Assign(targets=targets, value=value) if self._mentions(value):
                    self._names |= {name for target in targets for name in self._bound(target)}
                case ast.AugAssign(target=target, value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._names |= set(self._bound(target)) if self._mentions(value) else set()
                case ast.For(iter=value) | ast.If(test=value) | ast.While(test=value) if self._mentions(value):
                    # Which values these have depends on the download.
                    self._names |= _stored(node)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner)) as call) if self._mentions(call):
                    self._names |= set() if self._is_load(call) else {_root(owner)} & self._local
        return len(self._names) > before

    def _follow_back(self, statements: Sequence[ast.stmt]) -> bool:
        """Add names that only these statements read, such as that of the module's own state. Returns whether there are new ones."""
        inside = {id(part) for statement in statements for part in walk(statement)}
        uses = [node for node in walk(self._function) if isinstance(node, ast.Name)]
        reads = [node for node in uses if isinstance(node.ctx, ast.Load)]
        read_here = {node.id for node in reads if id(node) in inside}
        read_elsewhere = {node.id for node in reads if id(node) not in inside}
        candidates = (read_here - read_elsewhere) & self._local - self._parameters - self._names
        plain = {name for name in candidates if all(self._is_removable(statement, False) for statement in self._assignments(name))}
        self._names |= plain
        return bool(plain)

    def _assignments(self, name: str) -> list[ast.stmt]:
        return [
            statement
            for statement in walk(self._function)
            if isinstance(statement, ast.stmt) and not hasattr(statement, "body") and name in _stored(statement)
        ]

    @cached_property
    def _local(self) -> set[str]:
        """Names that assignments of the function bind."""
        elsewhere = {name for node in walk(self._function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
        simple = [statement for statement in walk(self._function) if isinstance(statement, (ast.Assign, ast.AnnAssign))]
        return {name for statement in simple for name in _stored(statement)} - elsewhere

    @cached_property
    def _parameters(self) -> set[str]:
        return {node.arg for node in walk(self._function) if isinstance(node, ast.arg)}

    def _bound(self, target: ast.expr) -> Iterator[str]:
        """The names that an assignment binds, or whose values it changes."""
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(part, ast.Name) or (isinstance(part, ast.Subscript) and _root(part) in self._local):
                yield _root(part)

    def _mentions(self, node: ast.AST) -> bool:
        return any((isinstance(part, ast.Name) and part.id in self._names) or self._means.is_download(part) for part in walk(node))

    def _collect(self, body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        """The outermost statements that the download reaches, of these. Raises `_OtherUse` where one does anything else."""
        for statement in body:
            if not self._mentions(statement):
                continue
            match statement:
                case ast.If(test=head, body=inner, orelse=orelse) if not self._mentions(head):
                    yield from self._collect([*inner, *orelse])
                    if len(orelse) == 1 and isinstance(orelse[0], ast.If) and self._mentions(orelse[0].test):
                        raise _OtherUse  # `elif` is no statement of its own
                case ast.For(iter=head, body=inner, orelse=orelse) if not self._mentions(head):
                    yield from self._collect([*inner, *orelse])
                case ast.With(items=items, body=inner) if not any(map(self._mentions, items)):
                    yield from self._collect(inner)
                case _ if self._is_removable(statement, False):
                    yield statement
                case _:
                    raise _OtherUse

    def _is_removable(self, statement: ast.stmt, in_loop: bool) -> bool:
        """Whether a statement changes nothing but such dictionaries, and the weights of modules by them."""
        match statement:
            case ast.Assign(targets=targets, value=value):
                return all(map(self._is_own_target, targets)) and self._is_own_value(value)
            case ast.AugAssign(target=target, value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._is_own_target(target) and self._is_own_value(value)
            case ast.Delete(targets=targets):
                return all(_root(target) in self._names and not isinstance(target, ast.Attribute) for target in targets)
            case ast.Expr(value=ast.Call() as call):
                return self._is_pure(call) or self._is_report(call)
            case ast.Assert(test=test):
                return self._is_pure(test)
            case ast.For(iter=head, body=body, orelse=orelse, target=target):
                return (
                    self._is_own_target(target)
                    and self._is_own_value(head)
                    and all(self._is_removable(statement, True) for statement in body)
                    and all(self._is_removable(statement, in_loop) for statement in orelse)
                )
            case ast.If(test=head, body=body, orelse=orelse):
                return self._is_pure(head) and all(self._is_removable(statement, in_loop) for statement in [*body, *orelse])
            case ast.With(items=items, body=body):
                heads = [item.context_expr for item in items]
                without = all(isinstance(head, ast.Call) and self._means.dotted(head.func) == "torch.no_grad" for head in heads)
                return without and all(self._is_removable(statement, in_loop) for statement in body)
            case ast.Continue() | ast.Break():
                return in_loop
        return isinstance(statement, ast.Pass)

    def _is_own_target(self, target: ast.expr) -> bool:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        return all(
            isinstance(part, ast.Name) or (isinstance(part, ast.Subscript) and _root(part) in self._names and self._is_pure(part.slice))
            for part in parts
        )

    def _is_own_value(self, value: ast.expr) -> bool:
        """Whether a value is made without effects, and is no other name for what the function has been given or a module holds: that may be changed by it."""
        return self._is_pure(value) and not self._is_alias(value)

    def _is_alias(self, value: ast.expr) -> bool:
        match value:
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return not self._begins_with_download(value) and _root(value) not in self._names | self._comprehended
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts) | ast.BoolOp(values=parts):
                return any(map(self._is_alias, parts))
            case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, op=ast.BitOr(), right=second):
                return self._is_alias(first) or self._is_alias(second)
            case ast.Starred(value=inner) | ast.ListComp(elt=inner) | ast.SetComp(elt=inner) | ast.GeneratorExp(elt=inner):
                return self._is_alias(inner)
            case ast.DictComp(value=inner):
                return self._is_alias(inner)
            case ast.Call() if not (self._means.is_download(value) or self._is_read(value) or self._is_own_method(value)):
                return any(map(self._is_alias, _arguments(value)))
        return False

    def _is_pure(self, value: ast.expr) -> bool:
        nodes = walk(value)
        return not any(isinstance(node, IMPURE) for node in nodes) and all(map(self._is_pure_call, filter(_is_call, nodes)))

    def _is_pure_call(self, call: ast.AST) -> bool:
        assert isinstance(call, ast.Call)
        function = call.func
        if self._is_load(call):
            return any(map(self._mentions, call.args)) and not any(map(self._is_alias, call.args))
        dotted = self._means.dotted(function)
        if self._means.is_download(call) or dotted in FUNCTIONS or dotted.startswith(TEXT_FUNCTIONS):
            return True
        if isinstance(function, ast.Name):
            return not dotted and function.id in BUILTINS
        if self._is_own_method(call):
            puts_in = isinstance(function, ast.Attribute) and (function.attr in PUTTING_IN or function.attr.endswith("_"))
            return not puts_in or not any(map(self._is_alias, _arguments(call)))
        return self._is_read(call)

    def _is_own_method(self, call: ast.Call) -> bool:
        """Whether this is a method of a text, of such a dictionary, or of what is in one."""
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is None:
            return False
        return isinstance(owner, ast.Constant) or self._begins_with_download(owner) or _root(owner) in self._names | self._comprehended

    def _begins_with_download(self, node: ast.expr) -> bool:
        """Whether an expression is a download, or something that is taken from it."""
        inner = _inner(node)
        return self._means.is_download(node) or (inner is not None and self._begins_with_download(inner))

    def _is_read(self, call: ast.Call) -> bool:
        """Whether this is `module.state_dict()`."""
        return isinstance(call.func, ast.Attribute) and call.func.attr in READS and self._means.is_module(call.func.value)

    @cached_property
    def _comprehended(self) -> set[str]:
        """Names that comprehensions alone bind, and no statement."""
        targets = [node.target for node in walk(self._function) if isinstance(node, ast.comprehension)]
        names = {part.id for target in targets for part in walk(target) if isinstance(part, ast.Name)}
        return names - self._local - self._parameters

    def _is_load(self, call: ast.Call) -> bool:
        """Whether this is `module.load_state_dict(…)`."""
        match call.func:
            case ast.Attribute(value=owner, attr="load_state_dict"):
                return self._means.is_module(owner)
        return False

    def _is_report(self, call: ast.Call) -> bool:
        """Whether a call tells people something, and does nothing else."""
        return self._means.is_report(call.func) and all(map(self._is_pure, _arguments(call)))


class _OtherUse(Exception):
    """Something else is made of a download."""


def _is_read_first(name: str, body: Sequence[ast.stmt], is_bound: bool) -> bool:
    """Whether statements may read the value that a name has before them, other than to choose a branch by it."""
    for statement in body:
        blocks = [getattr(statement, field) for field in ("body", "orelse", "finalbody") if getattr(statement, field, None)]
        heads = (
            [] if isinstance(statement, ast.If) else [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt)]
        )
        read = any(
            isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load) for head in heads for part in walk(head)
        )
        if (read and not is_bound) or any(_is_read_first(name, block, is_bound) for block in blocks):
            return True
        is_bound |= isinstance(statement, ast.Assign) and name in _stored(statement)
    return False


def _owner(call: ast.Call) -> str:
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _stored(statement: ast.AST) -> set[str]:
    """The names that a statement binds; those of its comprehensions are theirs alone."""
    targets = [node.target for node in walk(statement) if isinstance(node, ast.comprehension)]
    inside = {id(part) for target in targets for part in walk(target)}
    names = [part for part in walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    return {part.id for part in names if id(part) not in inside}


def _root(node: ast.AST) -> str:
    """The name that a chain of attributes, items and calls of methods begins with, or ""."""
    while (inner := _inner(node)) is not None:
        node = inner
    return node.id if isinstance(node, ast.Name) else ""


def _inner(node: ast.AST) -> ast.expr | None:
    """What an attribute, an item or a method is taken from."""
    match node:
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.Call(func=ast.Attribute(value=inner)):
            return inner
    return None
