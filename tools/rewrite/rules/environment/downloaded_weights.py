"""Weights that a module downloads while it is constructed, and loads into itself."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.repo import FunctionNode, dotted_name
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.control_flow.prints import LOGGING
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

DOWNLOADS = frozenset(
    """
    torch.hub.load_state_dict_from_url torch.utils.model_zoo.load_url
    torchvision.models.utils.load_state_dict_from_url torchvision._internally_replaced_utils.load_state_dict_from_url
    """.split()
)
"""Functions that give the state dictionary of an address."""
READS = frozenset({"state_dict", "named_parameters", "named_buffers"})
"""Methods of a module that give its tensors by name."""
BUILTINS = frozenset("dict enumerate isinstance len list max min range set sorted str sum tuple zip".split())
FUNCTIONS = frozenset({"collections.OrderedDict", "copy.copy", "copy.deepcopy", "torch.device", "torch.cuda.is_available"})
TEXT_FUNCTIONS = ("re.", "os.path.")
OWN_STATE = frozenset({"state_dict", "load_state_dict", "_load_from_state_dict"})
IMPURE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class LeaveDownloadsOut(Rule):
    """Remove what downloads a state dictionary and loads it into a module, with a comment that says how its weights come into the port.

    All that becomes of the download must be that: dictionaries of it, renamed and filtered, that `load_state_dict` takes, and lines that tell about
    it. Declines where anything else is made of it, such as a layer with as many outputs.
    """

    KEEP = ("def f(zoo, address):\n    weights = zoo.load_url(address)\n    return weights\n",)
    CHANGE = (
        (
            "from torch import nn\nimport torch.utils.model_zoo as model_zoo\n\nclass M(nn.Module):\n"
            "    def __init__(self, d, pretrained=True):\n        super().__init__()\n        self.layer = nn.Linear(d, d)\n"
            "        if pretrained:\n            self._load()\n\n"
            "    def _load(self):\n        loaded = model_zoo.load_url('https://a.b/m.pth')\n        fitting = {}\n"
            "        own = self.state_dict()\n        for k, v in loaded.items():\n            if k in own:\n                fitting[k] = v\n"
            "        own.update(fitting)\n        self.load_state_dict(own)\n",
            "class M(nnx.Module):\n    def __init__(self, d, pretrained=True, *, rngs: nnx.Rngs):\n"
            "        self.layer = Linear(d, d, rngs=rngs)\n        if pretrained:\n            self._load()\n\n"
            "    def _load(self):\n        # The weights of https://a.b/m.pth are left out: convert them with `migrate-agent weights`.\n        pass\n",
        ),
        (
            "from torch import nn\nfrom torch.hub import load_state_dict_from_url\n\nURLS = {'small': 'https://a.b/s.pth'}\n\n"
            "class M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.layer = nn.Linear(d, d)\n\n"
            "def small(pretrained=True):\n    model = M(2)\n    if pretrained:\n"
            "        pretrained = load_state_dict_from_url(URLS['small'], progress=False)\n        del pretrained['fc.weight']\n"
            "        model.load_state_dict(pretrained)\n    return model\n",
            "URLS = {'small': 'https://a.b/s.pth'}\n\n\nclass M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.layer = Linear(d, d, rngs=rngs)\n\n\ndef small(pretrained=True, *, rngs: nnx.Rngs):\n    model = M(2, rngs=rngs)\n"
            "    # The weights of https://a.b/s.pth are left out: convert them with `migrate-agent weights`.\n    return model\n",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._statements: dict[tuple[int, int], str] = {}
        """Line and column of each statement that is left out → the addresses that it downloads."""
        self._comments: list[cst.SimpleStatementLine] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        function = self.context.function
        if len(self.context.functions) != 1:
            return
        if function is None or self.context.host is not None or not any(map(self._is_download, walk(function))):
            return
        loading = Loading(function, self._is_download, self._is_module, self._is_report, self._dotted)
        lines = self.context.file.lines
        for statement in loading.statements:
            addresses = [self._address(part) for part in walk(statement) if isinstance(part, ast.Call) and self._is_download(part)]
            self._statements[span_of(statement, lines)[:2]] = ", ".join(dict.fromkeys(addresses))

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> Replacement | None:
        return self._left_out(original, *original.body)

    def leave_If(self, original: cst.If, updated: cst.If) -> Replacement | None:
        return self._left_out(original, original)

    def leave_For(self, original: cst.For, updated: cst.For) -> Replacement | None:
        return self._left_out(original, original)

    def leave_With(self, original: cst.With, updated: cst.With) -> Replacement | None:
        return self._left_out(original, original)

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock | None:
        """A comment stands above the next statement, or ends the block; where it is alone, `pass` stands for a statement."""
        if len(updated.body) < 2 or not any(statement in self._comments for statement in updated.body):
            return None
        body: list[cst.BaseStatement] = []
        waiting: list[cst.EmptyLine] = []
        for statement in updated.body:
            assert isinstance(statement, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
            if statement in self._comments:
                waiting += statement.leading_lines
            else:
                body.append(statement.with_changes(leading_lines=[*waiting, *statement.leading_lines]) if waiting else statement)
                waiting = []
        if not body:
            return None
        return updated.with_changes(body=body, footer=[*waiting, *updated.footer])

    def _left_out(self, original: cst.CSTNode, *statements: cst.CSTNode) -> Replacement | None:
        """What stands in the place of a statement: a comment where it downloads something, else nothing."""
        starts = [self.context.span(statement)[:2] for statement in statements]
        if not starts or not all(start in self._statements for start in starts):
            return None
        self.context.drop_holes(original)
        address = ", ".join(filter(None, (self._statements[start] for start in starts)))
        if not address:
            return cst.RemoveFromParent()
        text = f"the weights of {address} are left out: convert them with `migrate-agent weights`"
        self.context.notes.append(f"{self.context.file.file.path}:{starts[0][0]}: {text}, and load what it writes")
        line = cst.EmptyLine(comment=cst.Comment(f"# {text[0].upper()}{text[1:]}."))
        comment = cst.SimpleStatementLine([cst.Pass()], leading_lines=[line])
        self._comments.append(comment)
        return cst.FlattenSentinel([comment])

    def _dotted(self, node: ast.expr) -> str:
        return dotted_name(node, self.context.file)

    def _is_download(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and self._dotted(node.func) in DOWNLOADS

    def _is_module(self, node: ast.expr) -> bool:
        """Whether an expression is a module whose state is read and loaded by torch's own methods."""
        context, repo = self.context, self.context.repo
        if isinstance(node, ast.Name) and node.id == context.self_name() and context.cls is not None:
            if not repo.is_module_class(context.cls) and not repo.is_mixin(context.cls):
                return False
            models = [context.cls, *repo.descendants.get(context.cls.id, [])]
        else:
            kinds = self._kinds(node)
            if not kinds or not all(kind.startswith("module:") for kind in kinds):
                return False
            models = [model for kind in kinds if (model := repo.class_of(kind.removeprefix("module:"))) is not None]
        return not any(OWN_STATE & base.methods.keys() for model in models for base in repo.ancestors(model))

    def _is_report(self, function: ast.expr) -> bool:
        """Whether a function tells people something."""
        dotted = self._dotted(function)
        if isinstance(function, ast.Name) and function.id == "print":
            return not dotted
        if not isinstance(function, ast.Attribute) or function.attr not in LOGGING:
            return False
        loggers = {
            target.id
            for one in self.context.file.tree.body
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and self._dotted(one.value.func) == "logging.getLogger"
            for target in one.targets
            if isinstance(target, ast.Name)
        }
        observed = any(kind.startswith("object:logging.") for kind in self._kinds(function.value))
        known = isinstance(function.value, ast.Name) and function.value.id in loggers
        return dotted.startswith(("logging.", "warnings.")) or observed or known

    def _kinds(self, node: ast.expr) -> tuple[str, ...]:
        fact = self.context.facts.observed.get(span_of(node, self.context.file.lines))
        return fact.kinds if fact is not None else ()

    def _address(self, call: ast.Call) -> str:
        """The address that a call names: the text itself, where it stands there or in a table of the file."""
        node = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "url"), call)
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
                tables = [one.value for one in self.context.file.tree.body if isinstance(one, ast.Assign) and _binds(one, name)]
                table = tables[0] if len(tables) == 1 and isinstance(tables[0], ast.Dict) else ast.Dict([], [])
                rows = zip(table.keys, table.values, strict=True)
                node = next((value for at, value in rows if isinstance(at, ast.Constant) and at.value == key), node)
        return str(node.value) if isinstance(node, ast.Constant) else " ".join(ast.unparse(node).split())


Replacement = cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]


def _binds(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


class Loading:
    """The statements of a function that do nothing but make, change and load a state dictionary that is downloaded."""

    def __init__(
        self,
        function: FunctionNode,
        is_download: Callable[[ast.AST], bool],
        is_module: Callable[[ast.expr], bool],
        is_report: Callable[[ast.expr], bool],
        dotted: Callable[[ast.expr], str],
    ) -> None:
        self._function, self._dotted = function, dotted
        self._is_download, self._is_module, self._tells = is_download, is_module, is_report
        self._names: set[str] = set()
        """Local names for the dictionary, for what is taken from it, and for what it is put into."""

    @cached_property
    def statements(self) -> tuple[ast.stmt, ...]:
        """The outermost of them; none where anything else depends on the download."""
        try:
            while self._follow() or self._follow_back(tuple(self._collect(self._function.body))):
                pass
            return tuple(self._collect(self._function.body))
        except _OtherUse:
            return ()

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
                    self._names |= {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
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
        plain = {name for name in candidates if all(self._is_removable(one, False) for one in self._assignments(name))}
        self._names |= plain
        return bool(plain)

    def _assignments(self, name: str) -> list[ast.stmt]:
        return [one for one in walk(self._function) if isinstance(one, ast.stmt) and not hasattr(one, "body") and name in _stored(one)]

    @cached_property
    def _local(self) -> set[str]:
        """Names that assignments of the function bind."""
        elsewhere = {name for node in walk(self._function) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
        simple = [one for one in walk(self._function) if isinstance(one, (ast.Assign, ast.AnnAssign))]
        return {name for one in simple for name in _stored(one)} - elsewhere

    @cached_property
    def _parameters(self) -> set[str]:
        return {node.arg for node in walk(self._function) if isinstance(node, ast.arg)}

    def _bound(self, target: ast.expr) -> Iterator[str]:
        """The names that an assignment binds, or whose values it changes."""
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if not isinstance(part, ast.Attribute) and _root(part):
                yield _root(part)

    def _mentions(self, node: ast.AST) -> bool:
        return any((isinstance(part, ast.Name) and part.id in self._names) or self._is_download(part) for part in walk(node))

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
                    and all(self._is_removable(one, True) for one in body)
                    and all(self._is_removable(one, in_loop) for one in orelse)
                )
            case ast.If(test=head, body=body, orelse=orelse):
                return self._is_pure(head) and all(self._is_removable(one, in_loop) for one in [*body, *orelse])
            case ast.With(items=items, body=body):
                heads = [item.context_expr for item in items]
                without = all(isinstance(one, ast.Call) and self._dotted(one.func) == "torch.no_grad" for one in heads)
                return without and all(self._is_removable(one, in_loop) for one in body)
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
                return _root(value) not in self._names | self._comprehended
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts) | ast.BoolOp(values=parts):
                return any(map(self._is_alias, parts))
            case ast.IfExp(body=one, orelse=other):
                return self._is_alias(one) or self._is_alias(other)
            case ast.Starred(value=inner) | ast.ListComp(elt=inner) | ast.SetComp(elt=inner) | ast.DictComp(value=inner):
                return self._is_alias(inner)
            case ast.Call(func=ast.Name(), args=parts) if not self._is_download(value):
                return any(map(self._is_alias, parts))
        return False

    def _is_pure(self, value: ast.expr) -> bool:
        nodes = walk(value)
        return not any(isinstance(node, IMPURE) for node in nodes) and all(map(self._is_pure_call, filter(_is_call, nodes)))

    def _is_pure_call(self, call: ast.AST) -> bool:
        assert isinstance(call, ast.Call)
        function = call.func
        if self._is_download(call) or (self._is_load(call) and any(map(self._mentions, call.args))):
            return True
        dotted = self._dotted(function)
        if dotted in FUNCTIONS or dotted.startswith(TEXT_FUNCTIONS):
            return True
        if isinstance(function, ast.Name):
            return not dotted and function.id in BUILTINS
        if not isinstance(function, ast.Attribute):
            return False
        if isinstance(function.value, ast.Constant) or _root(function.value) in self._names | self._comprehended:
            return True
        return function.attr in READS and self._is_module(function.value)

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
                return self._is_module(owner)
        return False

    def _is_report(self, call: ast.Call) -> bool:
        """Whether a call tells people something, and does nothing else."""
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        return self._tells(call.func) and all(map(self._is_pure, arguments))


class _OtherUse(Exception):
    """Something else is made of a download."""


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _stored(statement: ast.AST) -> set[str]:
    return {part.id for part in walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _root(node: ast.AST) -> str:
    """The name that a chain of attributes, items and calls begins with, or ""."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
