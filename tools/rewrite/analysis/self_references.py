"""Finds functions stored on a module that hold the module itself: bound methods, and lambdas or
nested functions that read `self`.

NNX rebuilds a module from its state (`nnx.split`, `nnx.merge`, every transform). A function that
holds the module keeps the old one: it computes with stale values, and no gradient reaches the new
ones. Where all uses are visible, the rewrite stores the function unbound and passes the module at
each call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo, dotted_name
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

UNBOUND = frozenset({"staticmethod", "classmethod"})
READ_AS_VALUES = frozenset({"property", "cached_property"})
HELD = "a function that holds the module itself, which NNX rebuilds from its state; "


@dataclass(frozen=True)
class SelfReferences:
    """The spans of a class at which stored functions hold the instance.

    `methods`: bound methods. `functions`: lambdas and nested functions that read the instance.
    `calls`: calls of a stored function. `values`: other reads of one. `refused`: assignments that
    have no other form → the reason.
    """

    methods: frozenset[Span] = frozenset()
    functions: frozenset[Span] = frozenset()
    calls: frozenset[Span] = frozenset()
    values: frozenset[Span] = frozenset()
    refused: Mapping[Span, str] = field(default_factory=dict)
    arguments: Mapping[Span, str] = field(default_factory=dict)
    """Attributes that a stored lambda reads of the instance, and that are arguments of the constructor as it got them → the argument, which takes their place."""

    def __or__(self, other: SelfReferences) -> SelfReferences:
        return SelfReferences(
            self.methods | other.methods,
            self.functions | other.functions,
            self.calls | other.calls,
            self.values | other.values,
            {**self.refused, **other.refused},
            {**self.arguments, **other.arguments},
        )


@dataclass(frozen=True)
class _Store:
    """One assignment to `self.<name>`, or to an entry of it (`container`).

    `held`: its functions that hold the module. `free`: lambdas and nested functions that do not, and
    that could take it all the same. `plain`: it stores other values too. `none`: it stores `None`.
    `reason`: why it cannot be rewritten, or "". `arguments`: what the free ones read of the module that they can read of the constructor's arguments.
    """

    name: str
    model: ClassModel
    statement: ast.stmt
    container: bool
    held: tuple[ast.expr | FunctionNode, ...]
    free: tuple[ast.expr | FunctionNode, ...]
    plain: bool
    none: bool
    reason: str
    arguments: Mapping[Span, str] = field(default_factory=dict)


def self_references(repo: Repo, model: ClassModel, facts: Facts) -> SelfReferences:
    """The functions stored on a module class that hold its instance; empty for other classes."""
    if not repo.is_module_class(model):
        return SelfReferences()
    members = family(repo, model)
    methods = {name: method for member in members for name, method in member.methods.items()}
    by_name: dict[str, list[_Store]] = {}
    # What was observed is known by its place in one file: a family in several ones keeps its functions as they are, seen from each.
    together = all(member.file is model.file for member in members)
    kept = {member.id: kept_arguments(members, member, facts) if together else {} for member in members}
    for store in (store for member in members for store in _stores(repo, member, methods, kept[member.id])):
        by_name.setdefault(store.name, []).append(store)
    arguments = {span: name for stores in by_name.values() for one in stores if one.model is model for span, name in one.arguments.items()}
    holding = {name: stores for name, stores in by_name.items() if any(store.held or store.reason for store in stores)}
    # Most classes end here; the parents of all nodes would be found for nothing.
    if not holding:
        return SelfReferences(arguments=arguments)
    parents = {id(child): node for node in walk(model.node) for child in ast.iter_child_nodes(node)}
    references = SelfReferences(arguments=arguments)
    for name, stores in holding.items():
        reason = _conflict(stores, methods) or unseen_read(repo, members, name)
        uses = None if reason else _uses(model, parents, name, stores)
        own = [store for store in stores if store.model is model]
        if uses is None:
            references |= _refused(model, own, reason or "and which is read where it cannot be handed the module")
        else:
            references |= _stored_functions(model, own) | uses
    return references


def kept_arguments(members: Sequence[ClassModel], model: ClassModel, facts: Facts) -> dict[str, str]:
    """Attribute → argument of the constructor, of those numbers and words that the constructor keeps as it got them, and that nothing else sets."""
    constructor = model.methods.get("__init__")
    if constructor is None:
        return {}
    arguments = {one.arg for one in (*constructor.args.posonlyargs, *constructor.args.args, *constructor.args.kwonlyargs)}
    stored = [node.id for node in walk(constructor) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    pairs = {
        model.own[id(node.targets[0])]: node.value
        for node in constructor.body
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and id(node.targets[0]) in model.own and isinstance(node.value, ast.Name)
    }
    set_to = [
        (node.attr, id(node))
        for one in members
        for node in walk(one.node)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del) and id(node) in one.own
    ]
    return {
        name: value.id
        for name, value in pairs.items()
        if isinstance(value, ast.Name)
        and value.id in arguments
        and value.id not in stored
        and sum(other == name for other, _ in set_to) == 1
        if (fact := facts.observed.get(span_of(value, model.file.lines)))
        and fact.kinds
        and set(fact.kinds) <= {"int", "float", "bool", "str"}
    }


def _refused(model: ClassModel, stores: Iterable[_Store], reason: str) -> SelfReferences:
    spans = (span_of(store.statement, model.file.lines) for store in stores if store.held or store.reason)
    return SelfReferences(refused=dict.fromkeys(spans, HELD + reason))


def _stored_functions(model: ClassModel, stores: Iterable[_Store]) -> SelfReferences:
    # What stands under one name is called in one way: a function that needs no module is handed it too.
    held = [node for store in stores for node in (*store.held, *store.free)]
    bound = frozenset(span_of(node, model.file.lines) for node in held if isinstance(node, ast.Attribute))
    return SelfReferences(methods=bound, functions=frozenset(span_of(node, model.file.lines) for node in held) - bound)


def family(repo: Repo, model: ClassModel) -> list[ClassModel]:
    """The class, its bases, and all classes of the repository that derive from any of them."""
    above = list(repo.ancestors(model))
    return list({one.id: one for top in above for one in (top, *repo.descendants.get(top.id, ()))}.values())


def _conflict(stores: list[_Store], methods: Mapping[str, FunctionNode]) -> str:
    """Why the values stored under one name cannot be called in the same way; "" where they can."""
    if reason := next((one.reason for one in stores if one.reason), ""):
        return reason
    if stores[0].name in methods:
        return "and which takes the place of a method of its name"
    if any(one.plain for one in stores):
        return "kept under one name with others that do not"
    if len({one.container for one in stores if not one.none or one.held}) > 1:
        return "kept alone and in a container under one name"
    return ""


def unseen_read(repo: Repo, members: list[ClassModel], name: str) -> str:
    """Why not all reads of the attribute are visible; "" where they are."""
    inside = {id(node) for one in members for node in walk(one.node)}
    for file in repo.files.values():
        # A text search is far cheaper than a walk over the tree.
        if name not in file.text:
            continue
        # A read on `self` in an unrelated class concerns another attribute of the same name.
        own = {key for one in file.classes.values() for key in one.own}
        for node in walk(file.tree):
            if isinstance(node, ast.Attribute) and node.attr == name and id(node) not in own and not dotted_name(node, file):
                return f"and which {file.file.path}:{node.lineno} reads from outside"
            if isinstance(node, ast.Call) and id(node) in inside and _by_name(node, name):
                return f"and which line {node.lineno} names in a string"
    return ""


def _by_name(call: ast.Call, name: str) -> bool:
    function = call.func.id if isinstance(call.func, ast.Name) else ""
    return function in ("getattr", "setattr", "delattr") and any(isinstance(a, ast.Constant) and a.value == name for a in call.args)


# -- what is kept ---------------------------------------------------------------------------------------------------
def _stores(repo: Repo, model: ClassModel, methods: Mapping[str, FunctionNode], arguments: Mapping[str, str]) -> Iterator[_Store]:
    for function in model.methods.values():
        reader = _Reader(repo, model, function, methods, arguments if function is model.methods.get("__init__") else {})
        for node in walk(function):
            if isinstance(node, ast.stmt) and (assignment := _stored(model, node)):
                name, value, entry = assignment
                yield reader.read(name, node, value, entry)


def _stored(model: ClassModel, node: ast.stmt) -> tuple[str, ast.expr, bool] | None:
    """(attribute, value, whether it is an entry) that a statement stores on the module."""
    match node:
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            if name := model.own.get(id(target)):
                return name, value, False
            if isinstance(target, ast.Subscript) and (name := model.own.get(id(target.value))):
                return name, value, True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="append"), args=[value])) if name := model.own.get(id(owner)):
            return name, value, True
    return None


class _Reader:
    """Classifies the values that one method stores on the instance."""

    def __init__(
        self, repo: Repo, model: ClassModel, function: FunctionNode, methods: Mapping[str, FunctionNode], arguments: Mapping[str, str]
    ) -> None:
        """`arguments`: attribute → argument of this function that it is."""
        self.repo, self.model, self.function, self.methods, self.kept = repo, model, function, methods, arguments
        positional = [*function.args.posonlyargs, *function.args.args]
        self.own = positional[0].arg if positional else ""
        self.nested = {n.name: n for n in walk(function) if isinstance(n, ast.FunctionDef) and n is not function}
        self.aliases = own_aliases(function, model.own)

    def read(self, name: str, statement: ast.stmt, value: ast.expr, entry: bool) -> _Store:
        parts = self._parts(value)
        container = entry or parts is not None
        leaves = [leaf for part in ([value] if parts is None else parts) for leaf in _arms(part)]
        functions: list[ast.expr | FunctionNode] = []
        free: list[ast.expr | FunctionNode] = []
        reason, plain, none = "", False, False
        for leaf in leaves:
            function, picked = self._held(leaf), self._picked(leaf)
            if picked:
                functions += picked
                reason = reason or self._called_again(leaf)
            elif function is not None:
                functions.append(function)
                reason = reason or self._hidden(function)
            elif isinstance(leaf, ast.Constant) and leaf.value is None:
                none = True
            elif (other := self._free(leaf)) is not None:
                free.append(other)
            else:
                plain = True
                reason = reason or self._given(leaf)
        # Beside functions that hold the module, one that needs it for its numbers alone takes it as they do.
        read = {span: argument for leaf in leaves for span, argument in self._of_arguments(leaf).items()} if not functions else {}
        return _Store(name, self.model, statement, container, tuple(functions), tuple(free), plain, none, reason, read)

    def _of_arguments(self, leaf: ast.expr) -> dict[Span, str]:
        """The reads of the module in a lambda by the argument of the constructor that each is, where all are such; else nothing."""
        if not isinstance(leaf, ast.Lambda) or self._reads_alias(leaf):
            return {}
        named = {a.arg for a in (*leaf.args.posonlyargs, *leaf.args.args, *leaf.args.kwonlyargs)}
        reads = [node for node in walk(leaf) if isinstance(node, ast.Name) and node.id == self.own]
        spans = {
            span_of(node, self.model.file.lines): self.kept[node.attr]
            for node in walk(leaf)
            if isinstance(node, ast.Attribute) and self.model.own.get(id(node)) in self.kept and self.kept[node.attr] not in named
        }
        return spans if len(spans) == len(reads) and self.own not in named else {}

    def _parts(self, value: ast.expr) -> list[ast.expr] | None:
        """The entries of a dict, list or tuple display; `None` for any other expression."""
        match value:
            case ast.Dict(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
                return values
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if all(k.arg for k in keywords):
                return [keyword.value for keyword in keywords]
        return None

    def _held(self, leaf: ast.expr) -> ast.expr | FunctionNode | None:
        """The bound method, lambda or nested function of a value that holds the module; `None`
        where there is none.
        """
        match leaf:
            case ast.Attribute(attr=attr) if id(leaf) in self.model.own and attr in self.methods:
                return leaf if not self._decorated(attr) else None
            case ast.Lambda() if (self._reads_self(leaf) or self._reads_alias(leaf)) and not self._of_arguments(leaf):
                return leaf
            case ast.Name(id=name) if name in self.nested and self._reads_self(self.nested[name]):
                return self.nested[name]
            case ast.Call(args=[first]) if dotted_name(leaf.func, self.model.file) == "functools.partial":
                return self._held(first)
        return None

    def _free(self, leaf: ast.expr) -> ast.expr | FunctionNode | None:
        """The lambda or nested function of a value, where it could take the module though it does not hold it."""
        function = self.nested.get(leaf.id) if isinstance(leaf, ast.Name) else leaf
        if not isinstance(function, ast.Lambda | ast.FunctionDef) or self._hidden(function):
            return None
        return function

    def _picked(self, leaf: ast.expr) -> list[ast.expr]:
        """The bound methods that a method of this class may return: `self.fn = self.pick()`. Empty
        where it may return others.
        """
        if not (isinstance(leaf, ast.Call) and isinstance(leaf.func, ast.Attribute) and id(leaf.func) in self.model.own):
            return []
        method = self.model.methods.get(leaf.func.attr)
        returned = [node.value for node in walk(method) if isinstance(node, ast.Return)] if method else []
        arms = [arm for value in returned for arm in (_arms(value) if value is not None else [])]
        bound = [arm for arm in arms if isinstance(arm, ast.Attribute) and self._held(arm) is not None]
        return [*bound] if arms and len(bound) == len(arms) == sum(len(_arms(v)) if v else 1 for v in returned) else []

    def _called_again(self, leaf: ast.expr) -> str:
        """Why a method that returns a bound method cannot return the unbound one instead; "" where it can."""
        assert isinstance(leaf, ast.Call) and isinstance(leaf.func, ast.Attribute)
        name = leaf.func.attr
        calls = [
            node
            for one in family(self.repo, self.model)
            for node in walk(one.node)
            if isinstance(node, ast.Attribute) and node.attr == name
        ]
        defined = [one for one in family(self.repo, self.model) if name in one.methods]
        return "" if len(calls) == len(defined) == 1 else "and which is given back elsewhere too"

    def _decorated(self, method: str) -> bool:
        names = {getattr(d, "id", getattr(d, "attr", "")) for d in self.methods[method].decorator_list}
        return bool(names & (UNBOUND | READ_AS_VALUES))

    def _reads_alias(self, function: ast.Lambda) -> bool:
        """Whether a lambda reads another name of an attribute of the module: `m = self.mlp`."""
        arguments = function.args
        named = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        return any(isinstance(n, ast.Name) and n.id in self.aliases and n.id not in named for n in walk(function.body))

    def _reads_self(self, node: ast.AST) -> bool:
        return bool(self.own) and any(isinstance(n, ast.Name) and n.id == self.own for n in walk(node))

    def _hidden(self, function: ast.expr | FunctionNode) -> str:
        """Why a function cannot take the module as its first argument; "" where it can."""
        if not isinstance(function, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            return ""
        arguments = function.args
        named = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        # Its parameter would shadow the module that is to be passed in.
        if self.own in named or any(self._reads_self(d) for d in (*arguments.defaults, *arguments.kw_defaults) if d is not None):
            return "and which takes it as a default"
        if not isinstance(function, ast.Lambda):
            uses = [n for n in walk(self.function) if isinstance(n, ast.Name) and n.id == function.name]
            # The nested function gains a parameter, so that each other use of it would break.
            if function.decorator_list or len(uses) != 1:
                return "and which is used in its constructor too"
        return ""

    def _given(self, leaf: ast.expr) -> str:
        """Why a value that holds no function itself still holds the module; "" where it does not."""
        if not isinstance(leaf, ast.Call):
            return ""
        dotted = dotted_name(leaf.func, self.model.file)
        if not (self.repo.is_module(dotted) or dotted == "functools.partial"):
            return ""
        values = [*leaf.args, *(keyword.value for keyword in leaf.keywords)]
        holds_module = any(self._held(value) is not None or self._given(value) for value in values)
        return "and which is given away" if holds_module else ""


def own_aliases(function: FunctionNode, own: Mapping[int, str]) -> dict[str, str]:
    """Name → attribute, of each `m = self.mlp` at the top of a function that gives the name nothing else. `own`: `id` of each attribute of `self`."""
    stores = [node.id for node in walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    pairs = [(s.targets[0], s.value) for s in function.body if isinstance(s, ast.Assign) and len(s.targets) == 1]
    named = [(target.id, own[id(value)]) for target, value in pairs if isinstance(target, ast.Name) and id(value) in own]
    return {name: attribute for name, attribute in named if stores.count(name) == 1}


def _arms(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.IfExp):
        return [*_arms(value.body), *_arms(value.orelse)]
    return [value]


# -- how it is used -------------------------------------------------------------------------------------------------
def _uses(model: ClassModel, parents: Mapping[int, ast.AST], name: str, stores: list[_Store]) -> SelfReferences | None:
    """The calls and other reads of an attribute in a class; `None` where one of them cannot be rewritten."""
    calls: set[Span] = set()
    values: set[Span] = set()
    container = any(one.container for one in stores)
    none = any(one.none for one in stores)
    lines = model.file.lines
    filled = {id(n) for one in stores for n in walk(one.statement) if one.container and isinstance(n, ast.Attribute)}
    for node in walk(model.node):
        if not isinstance(node, ast.Attribute) or model.own.get(id(node)) != name or isinstance(node.ctx, ast.Store) or id(node) in filled:
            continue
        value, parent = (_entry(node, parents) if container else node), parents[id(node)]
        above = parents[id(value)] if value is not None else None
        if isinstance(above, ast.Call) and above.func is value:
            calls.add(span_of(above, lines))
        elif _is_existence_test(node, parent):
            continue
        # Where `None` may be stored, `partial(None, self)` would no longer be `None`.
        elif value is not None and not none and isinstance(node.ctx, ast.Load):
            values.add(span_of(value, lines))
        else:
            return None
    return SelfReferences(calls=frozenset(calls), values=frozenset(values))


def _entry(node: ast.Attribute, parents: Mapping[int, ast.AST]) -> ast.expr | None:
    """`self.table[k]` or `self.table.get(k)` around `self.table`."""
    match parents[id(node)]:
        case ast.Subscript(value=value) as entry if (
            value is node and isinstance(entry.ctx, ast.Load) and not isinstance(entry.slice, ast.Slice)
        ):
            return entry
        case ast.Attribute(attr="get") as method:
            call = parents[id(method)]
            is_called = isinstance(call, ast.Call) and isinstance(above := parents[id(call)], ast.Call) and above.func is call
            return call if is_called and isinstance(call, ast.Call) and len(call.args) == 1 else None
    return None


def _is_existence_test(node: ast.Attribute, parent: ast.AST) -> bool:
    """Whether a read only tests for existence, so that it may stay as it is."""
    match parent:
        case ast.Compare() | ast.Not() | ast.BoolOp():
            return True
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.If(test=test) | ast.IfExp(test=test):
            return test is node
        case ast.Call(func=ast.Name(id="callable" | "len" | "bool")):
            return True
        case ast.Attribute(attr="keys"):
            return True
    return False
