"""Methods of modules that act outside of them, such as an agent's choice of an action or its own training loop, become functions of the script. An
optimizer that a module has of itself, and lists that it keeps, stand beside it: a module holds layers, and what is computed by them.

class Policy(nn.Module):                              class Policy(nn.Module):
    def __init__(self):                                   def __init__(self):
        self.seen = []                                        self.fc = nn.Linear(4, 2)
        self.fc = nn.Linear(4, 2)
        self.optimizer = Adam(self.parameters())      def train_net(model, x, optimizer, kept):
                                                          loss = model.fc(x).mean()
    def train_net(self, x):                →              …
        loss = self.fc(x).mean()                          optimizer.step()
        …                                                 kept.seen.append(x)
        self.optimizer.step()
        self.seen.append(x)                           policy = Policy()
                                                      kept = SimpleNamespace(seen=[])
policy = Policy()                                     optimizer = Adam(policy.parameters())
policy.train_net(x)                                   train_net(policy, x, optimizer, kept)
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import blocks, body, call_of, is_optimizer
from migrate_agent.tools.programs.rewrite.names import CHANGES, SELF, FreeNames, Imports, bound, code, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

MODULE = "torch.nn.Module"
FETCHES = frozenset({"item", "tolist", "numpy", "backward"})
_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
DRAWS = ("random.", "np.random.", "numpy.random.")


@dataclass(frozen=True)
class Owned:
    """What a module has beside its layers: the attribute of an optimizer of itself ("": none), with the statement that constructs it, and of lists that
    it keeps; the statement that constructs the module, and the names of module, optimizer and what holds the lists.
    """

    attribute: str
    statement: cst.CSTNode | None
    lists: tuple[str, ...]
    holder: str
    module: cst.CSTNode
    owner: str
    name: str
    values: Mapping[str, cst.BaseExpression]
    """What the constructor's parameters are there."""


@dataclass(frozen=True, eq=False)
class HostClass:
    """A module class with methods that become functions: name of the method → its function's, in order, and what stands for `self` there."""

    node: cst.ClassDef
    methods: Mapping[str, cst.FunctionDef]
    names: Mapping[str, str]
    itself: str
    owned: Owned | None
    training: frozenset[str]
    """Methods that use the optimizer."""
    keeping: frozenset[str]
    """Methods that use the lists."""
    apart: frozenset[str]
    """Methods that use nothing else of the module: their functions are not handed it."""

    def further(self, method: str, optimizer: str) -> list[str]:
        """The names of what a method's function takes beside the module; `optimizer` is that of the optimizer."""
        if self.owned is None:
            return []
        return [optimizer] * (method in self.training) + [self.owned.holder] * (method in self.keeping)


class HostMethods(ScriptPass):
    """One pass over a script."""

    def __init__(self, module: cst.Module, imports: Imports) -> None:
        super().__init__()
        self._classes = list(_host_classes(module, imports))
        self._owners = [one for one in self._classes if one.owned is not None]
        self._gone = {line for one in self._owners for line in _moved(one)}
        self._inside: list[HostClass] = []
        self._functions: dict[HostClass, list[cst.FunctionDef]] = {}
        self.notes = [f"{one.node.name.value}.{name} is a function" for one in self._classes for name in one.methods]

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Note where a method begins."""
        self._inside += [one for one in self._classes if node in one.methods.values()]

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> Any:
        """A method becomes a function of the module, and of its optimizer where it uses that."""
        if not self._inside or original_node not in self._inside[-1].methods.values():
            return updated_node
        cls, name = self._inside.pop(), original_node.name.value
        parameters = [*([] if name in cls.apart else [cst.Param(cst.Name(cls.itself))]), *updated_node.params.params[1:]]
        first = next((i for i, one in enumerate(parameters) if one.default is not None), len(parameters))
        further = cls.further(name, cls.owned.attribute if cls.owned is not None else "")
        parameters[first:first] = [cst.Param(cst.Name(one)) for one in further]
        parameters = [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in parameters]
        new = updated_node.with_changes(
            name=cst.Name(cls.names[name]), params=updated_node.params.with_changes(params=parameters), leading_lines=_blank(updated_node)
        )
        self.origin[new] = original_node
        self._functions.setdefault(cls, []).append(new)
        return cst.RemoveFromParent()

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """The functions stand below their class."""
        lines: list[Any] = []
        for line in updated_node.body:
            lines.append(line)
            lines += [f for cls, some in self._functions.items() if self.origin.get(line) is cls.node for f in some]
        if any(one.owned is not None and one.owned.lists for one in self._owners):
            first = next(i for i, line in enumerate(lines) if "import" in code(line) and "__future__" not in code(line))
            lines.insert(first, cst.parse_statement("from types import SimpleNamespace"))
        return updated_node.with_changes(body=lines)

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """The optimizer is constructed after its module."""
        if original_node in self._gone:
            return cst.RemoveFromParent()
        owned = next((one.owned for one in self._owners if one.owned is not None and original_node is one.owned.module), None)
        if owned is None:
            return updated_node
        self.origin[updated_node] = original_node
        lines: list[Any] = [updated_node]
        if owned.lists:
            lines.append(cst.parse_statement(f"{owned.holder} = SimpleNamespace({', '.join(f'{one}=[]' for one in owned.lists)})"))
        if owned.statement is not None:
            construction: Any = owned.statement.deep_clone().visit(_Put({SELF: cst.Name(owned.owner), **owned.values}))
            made = construction.body[0].with_changes(targets=[cst.AssignTarget(cst.Name(owned.name))])
            lines.append(construction.with_changes(body=[made], leading_lines=()))
        return cst.FlattenSentinel(lines)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """What `self` was has another name in a function."""
        return cst.Name(self._inside[-1].itself) if self._inside and original_node.value == SELF else updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """`self.optimizer` is the function's argument, `policy.optimizer` what stands beside the module."""
        updated_node = updated_node.with_changes(attr=original_node.attr)
        owner = code(original_node.value)
        attribute = original_node.attr.value
        inside = self._inside[-1].owned if owner == SELF and self._inside else None
        own = inside or next((one.owned for one in self._owners if one.owned is not None and one.owned.owner == owner), None)
        if own is not None and attribute in own.lists:
            return cst.Attribute(cst.Name(own.holder), cst.Name(attribute))
        if own is not None and attribute == own.attribute:
            return cst.Name(own.attribute if inside else own.name)
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """`policy.train_net(x)` → `train_net(policy, x, optimizer)`, `self.forward(x)` → `model(x)`."""
        function = original_node.func
        if not isinstance(function, cst.Attribute) or not isinstance(updated_node.func, cst.Attribute):
            return updated_node
        method, owner = function.attr.value, updated_node.func.value
        if self._inside and method == "forward" and code(function.value) == SELF:
            return updated_node.with_changes(func=owner)
        cls = next((one for one in self._classes if method in one.methods), None)
        if cls is None:
            return updated_node
        arguments = [*([] if method in cls.apart else [cst.Arg(owner)]), *updated_node.args]
        if cls.owned is not None:
            here = cls.owned.attribute if self._inside and code(function.value) == SELF else cls.owned.name
            values = [cst.Arg(cst.Name(one)) for one in cls.further(method, here)]
            place = _required(cls.methods[method]) - (method in cls.apart)
            if any(one.keyword is not None for one in arguments[:place]):
                names = cls.further(method, cls.owned.attribute)
                arguments += [one.with_changes(keyword=cst.Name(name), equal=_TIGHT) for name, one in zip(names, values, strict=True)]
            else:
                arguments[place:place] = values  # behind it stand parameters with defaults
        plain = [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in arguments]
        return updated_node.with_changes(func=cst.Name(cls.names[method]), args=plain)


class _Put(cst.CSTTransformer):
    """Puts values in place of names, not of attributes."""

    def __init__(self, values: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self._values = values

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """What stands for the name."""
        value = self._values.get(updated_node.value)
        return updated_node if value is None else value.deep_clone()

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """The name of an argument is no name."""
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        """The name of an attribute is no name."""
        return updated_node.with_changes(attr=original_node.attr)


def _blank(node: cst.FunctionDef) -> list[cst.EmptyLine]:
    comments = [line for line in node.leading_lines if line.comment is not None]
    return [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False), *comments]


def _required(method: cst.FunctionDef) -> int:
    """How many parameters of a method have no default, `self` included."""
    return sum(one.default is None for one in method.params.params)


def _host_classes(module: cst.Module, imports: Imports) -> Iterator[HostClass]:
    """The module classes of a script with methods that can be functions."""
    free = FreeNames(text_of(module))
    bases = {name for node in module.body if isinstance(node, cst.ClassDef) for base in node.bases for name in read(base.value)}
    for node in module.body:
        direct = isinstance(node, cst.ClassDef) and [imports.of(base.value) for base in node.bases] == [MODULE]
        if not isinstance(node, cst.ClassDef) or not direct or node.name.value in bases:
            continue
        methods = _host_methods(node, imports)
        if not methods or not all(_is_called_alone(module, name, node) for name in methods):
            continue
        attribute, lists = _own_optimizer(node, imports), tuple(sorted(name.partition(".")[2] for name in _kept(node)))
        owned = _hoisted(module, node, attribute, lists, imports, free) if attribute or lists else None
        if owned is None and (lists or _constructs_optimizers(node, imports)):
            continue
        training = _users(methods, {attribute}) if attribute else frozenset()
        keeping = _users(methods, set(lists))
        if owned is not None and not _reaches(module, owned, methods, training | keeping):
            continue
        itself = next(name for name in ("model", node.name.value.lower(), "module") if not _mentions(methods.values(), name))
        apart = _apart(methods, {*lists, attribute} if owned is not None else set())
        yield HostClass(node, methods, {name: name for name in methods}, itself, owned, training, keeping, apart)


def _apart(methods: Mapping[str, cst.FunctionDef], beside: set[str]) -> frozenset[str]:
    """The methods that use nothing of the module but what stands beside it."""
    called = {name: _called(method) for name, method in methods.items()}
    bare = {name for name, method in methods.items() if _names_itself(method)}
    needing = {name for name, attributes in called.items() if attributes - beside - methods.keys()} | bare
    while more := {name for name in methods.keys() - needing if called[name] & needing}:
        needing |= more
    return frozenset(methods.keys() - needing)


def _names_itself(method: cst.FunctionDef) -> bool:
    """Whether a method uses its object otherwise than for an attribute."""
    nodes = list(ast.walk(_tree(method)))
    owners = sum(isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == SELF for one in nodes)
    return sum(isinstance(one, ast.Name) and one.id == SELF for one in nodes) > owners


def _methods(cls: cst.ClassDef) -> dict[str, cst.FunctionDef]:
    return {one.name.value: one for one in body(cls.body) if isinstance(one, cst.FunctionDef)}


def _host_methods(cls: cst.ClassDef, imports: Imports) -> dict[str, cst.FunctionDef]:
    """The methods that act outside: they fetch numbers, draw by Python, keep lists, train, or call such a method."""
    methods, lists = _methods(cls), _kept(cls)
    inner = {name for name in methods if name.startswith("__") or name == "forward" or not _is_plain(methods[name])}
    called = {name: _called(one) & methods.keys() for name, one in methods.items()}
    chosen = {name for name, one in methods.items() if name not in inner and _acts(one, lists)}
    while more := {name for name in methods.keys() - inner - chosen if called[name] & chosen}:
        chosen |= more
    # What a module is computed by stays, and so does what that calls.
    while kept := {name for name in chosen if any(name in called[other] for other in methods.keys() - chosen)}:
        chosen -= kept
    return {name: one for name, one in methods.items() if name in chosen}


def _is_plain(method: cst.FunctionDef) -> bool:
    """Whether a method is undecorated, takes `self` first, and no further arguments of any number."""
    parameters = method.params
    first = parameters.params[0].name.value if parameters.params else ""
    star = isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg is not None or parameters.kwonly_params
    nested = sum(isinstance(part, (ast.FunctionDef, ast.ClassDef, ast.Lambda)) for part in ast.walk(_tree(method))) > 1
    supers = any(name == "super" for name in read(method))
    return first == SELF and not star and not method.decorators and not nested and not supers and not method.asynchronous


def _kept(cls: cst.ClassDef) -> set[str]:
    """The attributes that begin as empty lists."""
    init = _methods(cls).get("__init__")
    rows = [line.body[0] for line in body(init.body) if isinstance(line, cst.SimpleStatementLine)] if init is not None else []
    return {
        code(one.targets[0].target)
        for one in rows
        if isinstance(one, cst.Assign) and isinstance(one.value, cst.List) and not one.value.elements
    }


def _acts(method: cst.FunctionDef, lists: set[str]) -> bool:
    calls = [node.func for node in ast.walk(_tree(method)) if isinstance(node, ast.Call)]
    attributes = {one.attr for one in calls if isinstance(one, ast.Attribute)}
    draws = any(ast.unparse(one).startswith(DRAWS) for one in calls)
    fills = any(isinstance(one, ast.Attribute) and one.attr in CHANGES and ast.unparse(one.value) in lists for one in calls)
    empties = any(name in lists for line in body(method.body) for name in bound(line))
    return bool(attributes & FETCHES) or draws or fills or empties


def _tree(method: cst.FunctionDef) -> ast.AST:
    return ast.parse(textwrap.dedent(code(method.with_changes(leading_lines=()))))


def _called(method: cst.FunctionDef) -> set[str]:
    """Methods of its own object that a method names."""
    return {
        node.attr
        for node in ast.walk(_tree(method))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == SELF
    }


def _is_called_alone(module: cst.Module, name: str, cls: cst.ClassDef) -> bool:
    """Whether a file has one thing of this name, and only calls it."""
    nodes = list(ast.walk(ast.parse(text_of(module))))
    defined = sum(isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name for node in nodes)
    named = any(isinstance(node, ast.Name) and node.id == name for node in nodes)
    named |= any(isinstance(node, (ast.arg, ast.keyword)) and node.arg == name for node in nodes)
    named |= any(isinstance(node, ast.Constant) and node.value == name for node in nodes)
    calls = [node.func for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name]
    stars = any(
        isinstance(argument, ast.Starred) for node in nodes if isinstance(node, ast.Call) and node.func in calls for argument in node.args
    )
    mentions = sum(isinstance(node, ast.Attribute) and node.attr == name for node in nodes)
    return defined == 1 and not named and not stars and mentions == len(calls) > 0


def _own_optimizer(cls: cst.ClassDef, imports: Imports) -> str:
    """The attribute of the only optimizer of its own parameters that a module constructs, after all else that it does then; ""."""
    init = _methods(cls).get("__init__")
    lines = list(body(init.body)) if init is not None else []
    rows = [
        (number, bound(line)[0].partition(".")[2])
        for number, line in enumerate(lines)
        if (call := call_of(line)) is not None and is_optimizer(imports.of(call.func)) and call.args
        if code(call.args[0].value) == f"{SELF}.parameters()" and len(bound(line)) == 1 and bound(line)[0].startswith(f"{SELF}.")
    ]
    return rows[0][1] if len(rows) == 1 and not any(_may_add(line, imports) for line in lines[rows[0][0] + 1 :]) else ""


def _constructs_optimizers(cls: cst.ClassDef, imports: Imports) -> bool:
    calls = [call_of(line) for method in _methods(cls).values() for line in body(method.body)]
    return any(call is not None and is_optimizer(imports.of(call.func)) for call in calls)


def _may_add(line: cst.CSTNode, imports: Imports) -> bool:
    """Whether a statement of a constructor may add parameters."""
    dotted = imports.of(call.func) if (call := call_of(line)) is not None else ""
    return not isinstance(line, cst.SimpleStatementLine) or (
        call is not None and (not dotted.startswith("torch.") or dotted.startswith("torch.nn."))
    )


def _moved(cls: HostClass) -> Iterator[cst.CSTNode]:
    """The statements of a constructor that stand beside the module."""
    owned, init = cls.owned, _methods(cls.node).get("__init__")
    for line in body(init.body) if init is not None and owned is not None else ():
        if owned is not None and (line is owned.statement or set(bound(line)) & {f"{SELF}.{one}" for one in owned.lists}):
            yield line


def _hoisted(
    module: cst.Module, cls: cst.ClassDef, attribute: str, lists: tuple[str, ...], imports: Imports, free: FreeNames
) -> Owned | None:
    """What stands beside its module; `None` where several modules of the class are made, or where the constructor alone knows what it needs."""
    init = _methods(cls)["__init__"]
    statement = next((line for line in body(init.body) if attribute and f"{SELF}.{attribute}" in bound(line)), None)
    own = {name for line in body(init.body) for name in bound(line) if not name.startswith(f"{SELF}.")}
    made = [
        (s, inside) for block, inside in blocks(module) for s in body(block) if isinstance(s, cst.SimpleStatementLine) and _makes(s, cls)
    ]
    mentions = sum(isinstance(n, ast.Name) and n.id == cls.name.value for n in ast.walk(ast.parse(text_of(module))))
    supers = sum(isinstance(n, ast.Name) and n.id == cls.name.value for n in ast.walk(_tree(init)))
    if len(made) != 1 or mentions - supers != 1:
        return None
    (line, inside) = made[0]
    values, reads = _arguments(init, line), set(read(statement)) if statement is not None else set()
    needed = {one.name.value for one in init.params.params} & reads - {SELF}
    in_loop = any(isinstance(one, (cst.For, cst.While, cst.ClassDef)) for one in inside)
    if reads & own or not needed <= values.keys() or len(bound(line)) != 1 or in_loop:
        return None
    name = bound(line)[0]
    optimizer = free.pick(attribute, f"{name}_{attribute}") if attribute else ""
    return Owned(attribute, statement, lists, free.pick("kept", f"{name}_kept"), line, name, optimizer, values)


def _arguments(init: cst.FunctionDef, line: cst.SimpleStatementLine) -> dict[str, cst.BaseExpression]:
    """The constructor's parameters that a call gives names or numbers, which are the same once more."""
    names, call = [one.name.value for one in init.params.params[1:]], call_of(line)
    assert call is not None
    result = {one.name.value: one.default for one in init.params.params[1:] if one.default is not None}
    for number, argument in enumerate(call.args):
        if argument.star or (argument.keyword is None and number >= len(names)):
            return {}
        result[argument.keyword.value if argument.keyword is not None else names[number]] = argument.value
    return {name: value for name, value in result.items() if isinstance(value, (cst.Name, cst.Integer, cst.Float, cst.Attribute))}


def _makes(statement: cst.SimpleStatementLine, cls: cst.ClassDef) -> bool:
    call = call_of(statement)
    return call is not None and code(call.func) == cls.name.value


def _users(methods: Mapping[str, cst.FunctionDef], attributes: set[str]) -> frozenset[str]:
    """The methods that name one of these attributes, or call one that does."""
    users = {name for name, one in methods.items() if attributes & _called(one)}
    while more := {name for name, one in methods.items() if name not in users and _called(one) & users}:
        users |= more
    return frozenset(users)


def _reaches(module: cst.Module, owned: Owned, methods: Mapping[str, cst.FunctionDef], users: frozenset[str]) -> bool:
    """Whether all that uses what stands beside a module is a function, or stands where both are in sight."""
    place = next(inside for block, inside in blocks(module) if owned.module in body(block))
    functions = [one for one in place if isinstance(one, cst.FunctionDef)]
    region = _tree(functions[0]) if functions else ast.parse(text_of(module))
    names = {*owned.lists, owned.attribute} - {""}

    def uses(tree: ast.AST, owner: str) -> int:
        chains = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        return sum(node.attr in users | names and ast.unparse(node.value) == owner for node in chains)

    every = ast.parse(text_of(module))
    called = sum(
        isinstance(node, ast.Attribute) and node.attr in users and ast.unparse(node.value) not in (SELF, owned.owner)
        for node in ast.walk(every)
    )
    # What constructs them are the other uses.
    own = sum(uses(_tree(one), SELF) for one in methods.values()) + len(names)
    return not called and uses(every, owned.owner) == uses(region, owned.owner) and uses(every, SELF) == own


def _mentions(methods: Sequence[cst.FunctionDef] | Any, name: str) -> bool:
    return any(
        isinstance(n, (ast.Name, ast.arg)) and name in (getattr(n, "id", ""), getattr(n, "arg", ""))
        for one in methods
        for n in ast.walk(_tree(one))
    )
