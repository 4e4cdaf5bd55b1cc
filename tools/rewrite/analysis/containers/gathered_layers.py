"""Plain lists and dictionaries in which a constructor gathers modules before it registers them under another name."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from migrate_agent.tools.rewrite.analysis.containers.contents import ADDING, JOINING, Contents
from migrate_agent.tools.rewrite.analysis.containers.interim_containers import free_name, is_plain_container
from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import MODULE_BASES, ClassModel, FunctionNode, Repo, dotted_name
from migrate_agent.tools.rewrite.analysis.self_references import family, unseen_read
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

MODULE_DICT = "torch.nn.ModuleDict"
REGISTERED = frozenset({"torch.nn.ModuleList", MODULE_DICT})
"""Containers whose reads are those of the plain list or dictionary that they are made of."""
BY_NAME = frozenset({"getattr", "setattr", "hasattr", "delattr", "attrgetter"})
CHANGING = ADDING | JOINING | frozenset({"pop", "popitem", "remove", "clear", "sort", "reverse"})
PASSING = frozenset({"enumerate", "len", "zip", "reversed"})
"""Functions that read the elements of an argument and keep nothing else of it."""
BASES = MODULE_BASES | {"abc.ABC", "typing.Generic"}
INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class GatheredLayers:
    """The spans of attributes such as `self.layers`, where `self.net = nn.ModuleList(self.layers)` registers what they hold.

    `locals`: in the constructor → the local variable that it is in the rewrite. `reads`: in other methods → the attribute with the same modules.
    """

    locals: Mapping[Span, str] = field(default_factory=dict)
    reads: Mapping[Span, str] = field(default_factory=dict)


def gathered_layers(repo: Repo, model: ClassModel, facts: Facts, taken_names: Collection[str] = ()) -> GatheredLayers:
    """The plain containers of a module class that nothing but its constructor needs, or whose other reads the registered one can serve.

    None where anything else may see the attribute: relatives of the class, other code that reads this name from an object, a name in a string, a
    function that the constructor keeps, or a method that it calls. `taken_names`: names of local variables that the rewrite of the constructor has anyway.
    """
    constructor = model.methods.get("__init__")
    if constructor is None or not repo.is_module_class(model):
        return GatheredLayers()
    variables: dict[Span, str] = {}
    reads: dict[Span, str] = {}
    for name in _plain_containers(model, constructor, facts):
        gathering = _Gathering(repo, model, facts, constructor, name)
        if not gathering.is_alone or gathering.local in {*taken_names, *variables.values()}:
            continue
        others = gathering.elsewhere
        registered = gathering.registered_name if others else ""
        if others and not registered:
            continue
        variables |= dict.fromkeys((span_of(node, model.file.lines) for node in gathering.own), gathering.local)
        reads |= dict.fromkeys((span_of(node, model.file.lines) for node in others), registered)
    return GatheredLayers(variables, reads)


def is_registered(model: ClassModel, facts: Facts, name: str) -> bool:
    """Whether the constructor registers all that its attribute holds: `nn.ModuleList(self.<name>)`, `nn.Sequential(*self.<name>)`."""
    constructor = model.methods.get("__init__")
    for node in walk(constructor) if constructor else ():
        match node:
            case ast.Call(args=[ast.Starred(value=container)], keywords=[]) if model.own.get(id(container)) == name:
                if _callee(model, facts, node) == "torch.nn.Sequential":
                    return True
            case ast.Call(args=[container], keywords=[]) if (
                model.own.get(id(container)) == name and _callee(model, facts, node) in REGISTERED
            ):
                return True
    return False


def _callee(model: ClassModel, facts: Facts, call: ast.Call) -> str:
    return facts.dotted.get(span_of(call.func, model.file.lines), "")


def _plain_containers(model: ClassModel, constructor: FunctionNode, facts: Facts) -> Iterator[str]:
    """The attributes to which the constructor gives new plain containers alone, in which modules come to stand."""
    stores: dict[str, list[ast.expr | None]] = {}
    for node in walk(constructor):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and (name := model.own.get(id(node))):
            stores.setdefault(name, [])
    values = _assigned(model, constructor)
    for name in stores:
        new_values = [value for one, value in values if one == name]
        count = sum(
            isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load) and model.own.get(id(n)) == name for n in walk(constructor)
        )
        additions = sum(isinstance(n, ast.AugAssign) and model.own.get(id(n.target)) == name for n in walk(constructor))
        if (
            not new_values
            or len(new_values) + additions != count
            or not all(_is_plain(model, facts, name, value, len(new_values)) for value in new_values)
        ):
            continue
        contents = Contents([model], facts)
        kinds = contents.kinds_added(name).union(*(contents.kinds(value, constructor) for value in new_values))
        if kinds and all(kind.startswith("module:") for kind in kinds - {"none"}):
            yield name


def _assigned(model: ClassModel, constructor: FunctionNode) -> list[tuple[str, ast.expr]]:
    """Each attribute that the constructor assigns alone, with its value."""
    pairs: list[tuple[str, ast.expr]] = []
    for node in walk(constructor):
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                if name := model.own.get(id(target)):
                    pairs.append((name, value))
    return pairs


def _is_plain(model: ClassModel, facts: Facts, name: str, value: ast.expr, count: int) -> bool:
    """Whether a value is a new list, tuple or dictionary, what the list was with more at its end, or a local name for one."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return model.own.get(id(value.left)) == name and isinstance(value.right, ast.List | ast.ListComp)
    if isinstance(value, ast.Name):
        return count == 1 and _is_local_container(model, value.id)
    return isinstance(value, ast.Tuple) or is_plain_container(value)


def _is_local_container(model: ClassModel, name: str) -> bool:
    """Whether the constructor binds a name once, at its top, to a new plain container."""
    constructor = model.methods["__init__"]
    additions = {id(node.target) for node in walk(constructor) if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)}
    names = [node for node in walk(constructor) if isinstance(node, ast.Name) and node.id == name and id(node) not in additions]
    stores = sum(not isinstance(node.ctx, ast.Load) for node in names)
    values = [
        statement.value
        for statement in constructor.body
        if isinstance(statement, ast.Assign) and [getattr(target, "id", "") for target in statement.targets] == [name]
    ]
    parameters = {node.arg for node in walk(constructor) if isinstance(node, ast.arg)}
    return stores == len(values) == 1 and name not in parameters and is_plain_container(values[0])


@dataclass(frozen=True)
class _Gathering:
    """One attribute of a class, to which its constructor gives a plain container."""

    repo: Repo
    model: ClassModel
    facts: Facts
    constructor: FunctionNode
    name: str

    @cached_property
    def members(self) -> list[ClassModel]:
        return family(self.repo, self.model)

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        return {id(child): node for node in walk(self.model.node) for child in ast.iter_child_nodes(node)}

    @cached_property
    def alias(self) -> str:
        """The local name of the same container, in `self.layers = layers`; "" where there is none."""
        value = next(value for name, value in _assigned(self.model, self.constructor) if name == self.name)
        return value.id if isinstance(value, ast.Name) else ""

    @cached_property
    def local(self) -> str:
        return self.alias or free_name(self.constructor, self.name)

    @cached_property
    def own(self) -> list[ast.expr]:
        """The attribute, wherever the constructor has it."""
        return [node for node in walk(self.constructor) if isinstance(node, ast.Attribute) and self.model.own.get(id(node)) == self.name]

    @cached_property
    def elsewhere(self) -> list[ast.expr]:
        """The attribute, wherever other methods have it."""
        inside = {id(node) for node in self.own}
        return [
            node
            for node in walk(self.model.node)
            if isinstance(node, ast.Attribute) and self.model.own.get(id(node)) == self.name and id(node) not in inside
        ]

    @cached_property
    def names(self) -> list[ast.expr]:
        """The container under either name, wherever the constructor has it."""
        alias = [node for node in walk(self.constructor) if isinstance(node, ast.Name) and self.alias == node.id]
        return [*self.own, *alias]

    @property
    def is_alone(self) -> bool:
        """Whether the constructor makes something of the container, and no code but the methods of this class sees the attribute."""
        inner = {id(node) for one in walk(self.constructor) if isinstance(one, INNER) and one is not self.constructor for node in walk(one)}
        in_functions = any(id(node) in inner for node in self.names)
        has_use = any(isinstance(getattr(node, "ctx", None), ast.Load) and not self._is_filled(node) for node in self.names)
        return (
            has_use
            and not in_functions
            and not self._is_known_to_family()
            and not self._is_named()
            and not unseen_read(self.repo, self.members, self.name)
        )

    def _is_filled(self, node: ast.expr) -> bool:
        """Whether a read only serves to put something in, or to give the container its other name."""
        parent = self.parents[id(node)]
        match parent:
            case ast.Attribute(attr=method):
                return method in CHANGING
            case ast.Subscript(value=value, ctx=ast.Store()):
                return value is node
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                return self.model.own.get(id(target)) == self.name
        return False

    def _is_known_to_family(self) -> bool:
        """Whether relatives of the class have the attribute too, or may have it, or one of the classes has the name outside of its methods."""
        if not all(self._is_followed(base, one) for one in self.members for base in one.node.bases):
            return True
        others = [one for one in self.members if one.node is not self.model.node]
        if any(self.name in one.own.values() for one in others):
            return True
        bodies = [statement for one in self.members for statement in one.node.body]
        names = {node.id for one in bodies if not isinstance(one, INNER) for node in walk(one) if isinstance(node, ast.Name)}
        return self.name in names or any(getattr(one, "name", "") == self.name for one in bodies)

    def _is_followed(self, base: ast.expr, member: ClassModel) -> bool:
        """Whether a base is a class of the repository, or one that has no attributes of its own."""
        name = dotted_name(base, member.file)
        return name in BASES or getattr(base, "id", "") == "object" or self.repo.class_of(name) is not None

    def _is_named(self) -> bool:
        """Whether a string may name the attribute: anywhere in the repository, or one that these classes compute."""
        for file in self.repo.files.values():
            if self.name in file.text and any(_looks_up(node, self.name) for node in walk(file.tree)):
                return True
        return any(_looks_up_any(node) for one in self.members for node in walk(one.node))

    @property
    def registered_name(self) -> str:
        """The attribute whose reads give just the same modules as those of other methods; "" where none surely does."""
        for index, statement in enumerate(self.constructor.body):
            match statement:
                case ast.Assign(targets=[target], value=ast.Call(args=[container], keywords=[]) as call) if any(
                    container is node for node in self.names
                ):
                    attribute = self.model.own.get(id(target), "")
                    if (
                        _callee(self.model, self.facts, call) in REGISTERED
                        and attribute
                        and self._is_same_throughout(attribute, index, container)
                    ):
                        # Flax's own dictionary, which the registered one may become, is sorted.
                        return "" if _callee(self.model, self.facts, call) == MODULE_DICT and self._has_order_read() else attribute
        return ""

    def _is_same_throughout(self, attribute: str, index: int, container: ast.expr) -> bool:
        """Whether the container no longer changes from the statement at `index` on, methods only read it, and the registered one never changes."""
        after = {id(node) for statement in self.constructor.body[index + 1 :] for node in walk(statement)}
        if not all(self._only_reads(node) for node in self.elsewhere):
            return False
        if not all(
            node is container or self._only_reads(node) or (id(node) not in after and self._is_changed(node)) for node in self.names
        ):
            return False
        return not self._hands_itself_on() and not self._calls_readers() and not self._changes(attribute)

    def _has_order_read(self) -> bool:
        """Whether a method goes through the container, rather than ask for single elements."""
        parents = [self.parents[id(node)] for node in self.elsewhere]
        return not all(
            isinstance(parent, ast.Subscript | ast.Compare) or (isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "len")
            for parent in parents
        )

    def _only_reads(self, node: ast.expr) -> bool:
        """Whether elements are read, and the container is not kept, handed on or changed."""
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            return False
        parent = self.parents[id(node)]
        match parent:
            case ast.For(iter=read) | ast.comprehension(iter=read):
                return read is node
            case ast.Call(func=ast.Name(id=function)):
                return function in PASSING and any(argument is node for argument in parent.args)
            case ast.Subscript(value=read, slice=index, ctx=ast.Load()):
                return read is node and (not isinstance(index, ast.Slice) or self._only_reads(parent))
            case ast.Attribute(attr="items" | "keys" | "values"):
                call = self.parents[id(parent)]
                return isinstance(call, ast.Call) and call.func is parent
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                return parent.left is not node
            case ast.Starred():
                return True
        return False

    def _is_changed(self, node: ast.expr) -> bool:
        """Whether the container is made or filled here, and stays under its names alone."""
        parent = self.parents[id(node)]
        match parent:
            case ast.Attribute(attr=method):
                return method in CHANGING and isinstance(call := self.parents[id(parent)], ast.Call) and call.func is parent
            case ast.Assign(targets=[target], value=value):
                return target is node or (value is node and self.model.own.get(id(target)) == self.name and isinstance(node, ast.Name))
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                return target is node
            case ast.Subscript(value=value, ctx=ast.Store()):
                return value is node
            case ast.BinOp():
                return True
        return False

    def _hands_itself_on(self) -> bool:
        """Whether the constructor gives the module itself to other code, which could change what is registered."""
        me = self.constructor.args.args[0].arg if self.constructor.args.args else ""
        for node in walk(self.constructor):
            if isinstance(node, ast.Name) and node.id == me and not isinstance(parent := self.parents[id(node)], ast.Attribute):
                function = parent.func if isinstance(parent, ast.Call) else None
                is_super = isinstance(function, ast.Name) and function.id == "super"
                # `nn.Module.__init__(self)`
                if not is_super and not (isinstance(function, ast.Attribute) and function.attr == "__init__"):
                    return True
        return False

    def _calls_readers(self) -> bool:
        """Whether the constructor may run a method that reads the container, which is not registered yet."""
        readers = {method.name for method in self._functions() if any(node in self.elsewhere for node in walk(method))}
        while more := {one.name for one in self._functions() if self._names_own(one) & readers} - readers - {"__init__"}:
            readers |= more
        return bool(self._names_own(self.constructor) & readers)

    def _functions(self) -> list[FunctionNode]:
        return [
            one for one in self.model.node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one is not self.constructor
        ]

    def _names_own(self, method: FunctionNode) -> set[str]:
        return {name for node in walk(method) if (name := self.model.own.get(id(node)))}

    def _changes(self, attribute: str) -> bool:
        """Whether any code changes the registered container, or stores another under its name."""
        nodes: Sequence[ast.AST] = [node for file in self.repo.files.values() if attribute in file.text for node in walk(file.tree)]
        # Unrelated classes may store something under the same name.
        unrelated = {
            key
            for file in self.repo.files.values()
            for one in file.classes.values()
            if all(one.node is not member.node for member in self.members)
            for key in one.own
        }
        stores = 0
        for node in nodes:
            match node:
                case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()) if name == attribute and id(node) not in unrelated:
                    stores += 1
                case ast.Subscript(value=ast.Attribute(attr=name), ctx=ast.Store() | ast.Del()) if name == attribute:
                    return True
                case ast.Attribute(value=ast.Attribute(attr=name), attr=method) if name == attribute and method in CHANGING | {
                    "add_module"
                }:
                    return True
            if _looks_up(node, attribute):
                return True
        return stores != 1


def _looks_up(node: ast.AST, name: str) -> bool:
    """Whether a call looks an attribute up by a string that is its name."""
    if not isinstance(node, ast.Call):
        return False
    function = getattr(node.func, "id", getattr(node.func, "attr", ""))
    return function in BY_NAME and any(isinstance(argument, ast.Constant) and argument.value == name for argument in node.args)


def _looks_up_any(node: ast.AST) -> bool:
    """Whether attributes are read by a name that is computed, or all of them at once."""
    match node:
        case ast.Call(func=ast.Name(id="getattr" | "hasattr" | "delattr"), args=[_, name, *_]):
            return not isinstance(name, ast.Constant)
        case ast.Call(func=ast.Name(id="vars")) | ast.Attribute(attr="__dict__"):
            return True
    return False
