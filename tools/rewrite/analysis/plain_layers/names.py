"""Which layers the names of a repository stand for, by the text of its files alone."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from migrate_agent.tools.rewrite.analysis.plain_layers.class_names import PARAMETERS
from migrate_agent.tools.rewrite.tables.registry import layers, public_name
from migrate_agent.tools.scan.nodes import walk

UNKNOWN = "?"
OTHER = "other"
"""A value that is no layer of torch: an array, a number, an instance of a class of the repository."""
SAME_AS = "="
"""Before a name that another one is bound to."""
HOLDERS = ("torch.nn.Sequential", "torch.nn.ModuleList")
SELF_RETURNING = frozenset("to cuda cpu half float double train eval requires_grad_ apply".split())
"""Methods of a module that give the module itself."""
REPARAMETRIZATIONS = (
    "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm",
    "torch.nn.utils.parametrizations.",
    "torch.nn.utils.parametrize.",
)
"""Functions that give, or change, the layer that is their first argument."""
LONGEST_WAY = 4
"""Names that are followed from one to the next."""
NOT_ARRAYS = (
    "torch.nn.",
    "torch.jit.",
    "torch.ao.",
    "torch.quantization.",
    "torch.fx.",
    "torch.func.",
    "torch.compile",
    "torch.hub.",
    "torch.load",
)
"""Beginnings of names in torch that may give a module."""


class ParsedFile(Protocol):
    """A file of a repository: its tree, names bound by imports → dotted names, and its classes by name."""

    @property
    def tree(self) -> ast.Module: ...
    @property
    def bindings(self) -> Mapping[str, str]: ...
    @property
    def classes(self) -> Collection[str]: ...


def dotted(file: ParsedFile, node: ast.AST) -> str:
    """The dotted name that a chain of attributes stands for by the imports of its file; "" for anything else."""
    trail: list[str] = []
    while isinstance(node, ast.Attribute):
        trail.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in file.bindings:
        return ""
    return public_name(".".join([file.bindings[node.id], *reversed(trail)]))


@dataclass
class Elements:
    """The layers in a container: `every`, and `ordered` where each place is known."""

    every: frozenset[str]
    ordered: tuple[frozenset[str], ...] = ()


Bound = tuple[ParsedFile, ast.expr]
Name = tuple[str, str, int]
"""(what is named; the name; the class whose own attribute or the function whose own variable it is, 0 for those of all)."""


@dataclass
class LayersByName:
    """The layers of the attributes and variables of a repository. `self.norm` is what its class binds it to, and a variable what its function
    binds it to, where these do; any other attribute or variable is what the name is bound to anywhere."""

    bound: dict[Name, list[Bound]] = field(default_factory=dict)
    """"attribute" or "variable" → what is bound to it; "loop" → the containers that a variable goes through; "appended" → what is appended
    to it; "function" → what it gives."""
    owners: dict[int, int] = field(default_factory=dict)
    """Expression → the class that it stands in, both by `id`."""
    scopes: dict[int, int] = field(default_factory=dict)
    """Expression → the function that it stands in, both by `id`."""
    parameters: frozenset[Name] = frozenset()
    own_classes: frozenset[str] = frozenset()
    """Classes of the repository that are no kind of a layer of torch."""
    having_parameters: Mapping[str, bool] = field(default_factory=dict)
    """Each of them → whether its instances may have a weight or bias of their own."""
    giving_several: frozenset[str] = frozenset()
    """Classes of the repository whose calls give tuples or dictionaries."""
    functions: frozenset[str] = frozenset()
    own_attributes: frozenset[str] = frozenset()
    """Attributes that classes of the repository give to themselves."""
    classes: dict[int, Mapping[str, set[str]]] = field(default_factory=dict)
    """File → name → the layers that it stands for as a class."""
    by_class_name: Mapping[str, int] = field(default_factory=dict)
    """Class of the repository whose name no other one has → its definition by `id`."""
    _instances: dict[int, int] = field(default_factory=dict)
    """Expression → the class that it is an instance of, both by `id`, 0 where that is not known."""
    _elements: dict[int, int] = field(default_factory=dict)
    """Container → the class that its elements are instances of, likewise."""
    _known: dict[Name, frozenset[str]] = field(default_factory=dict)
    _open: set[Name] = field(default_factory=set)
    """Names whose elements are being put in order: `size = (size[0], size[1])` is made of itself."""

    def by_attribute(self) -> dict[str, frozenset[str]]:
        """Attribute, keyword or entry → the layers that the repository keeps under it; none where nothing says so."""
        return {name: self._known[of, name, owner] for of, name, owner in self.bound if of == "attribute" and not owner}

    def add(self, of: str, name: str, bound: Bound, owner: int = 0) -> None:
        """Note what a name is bound to."""
        self.bound.setdefault((of, name, owner), []).append(bound)

    def name_of(self, node: ast.Attribute | ast.Name) -> Name:
        """The name that an expression is: of its own class, or of all."""
        if isinstance(node, ast.Name):
            local: Name = ("variable", node.id, self.scopes.get(id(node), 0))
            return (
                local if local in self.bound or ("loop", *local[1:]) in self.bound or local in self.parameters else ("variable", node.id, 0)
            )
        own: Name = ("attribute", node.attr, self.class_of(node.value))
        return own if own[2] and own in self.bound else ("attribute", node.attr, 0)

    def class_of(self, node: ast.expr) -> int:
        """The class of the repository that an expression is an instance of, by `id`: what its name is bound to is made of this class alone. 0 where
        that is not known."""
        if is_self(node):
            return self.owners.get(id(node), 0)
        if id(node) not in self._instances:
            self._instances[id(node)] = 0  # A name may be bound to what is made of itself.
            self._instances[id(node)] = self._class_of(node)
        return self._instances[id(node)]

    def _class_of(self, node: ast.expr) -> int:
        if isinstance(node, ast.Call):
            return self.by_class_name.get(last_name(node.func), 0)
        if isinstance(node, ast.Subscript):
            return self._class_in(node.value)
        if not isinstance(node, (ast.Name, ast.Attribute)) or (key := self.name_of(node)) in self.parameters:
            return 0
        loops = self.bound.get(("loop", *key[1:]), []) if key[0] == "variable" else []
        values = [value for _, value in self.bound.get(key, []) if not isinstance(value, ast.Constant)]
        return _only([*map(self.class_of, values), *(self._class_in(container) for _, container in loops)])

    def _class_in(self, node: ast.expr) -> int:
        """The class that all elements of a container are instances of."""
        if id(node) not in self._elements:
            self._elements[id(node)] = 0  # A container may be made of itself, by way of another name.
            self._elements[id(node)] = self._class_of_elements(node)
        return self._elements[id(node)]

    def _class_of_elements(self, node: ast.expr) -> int:
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.class_of(node.elt)
        if isinstance(node, (ast.List, ast.Tuple)):
            return _only([self.class_of(element) for element in node.elts])
        if isinstance(node, ast.Call) and last_name(node.func) == "ModuleList":
            return self._class_in(node.args[0]) if node.args else 0
        if not isinstance(node, ast.Attribute):
            return 0
        key = self.name_of(node)
        appended = [self.class_of(value) for _, value in self.bound.get(("appended", *key[1:]), [])]
        # `self.blocks = nn.ModuleList(self.blocks)` has the elements that were there.
        filled = [value for _, value in self.bound.get(key, []) if not _is_empty(value) and not self._is_made_of(value, key)]
        return _only([*map(self._class_in, filled), *appended])

    def _is_made_of(self, node: ast.expr, key: Name) -> bool:
        """Whether an expression is a list of modules of what this name stood for."""
        if not isinstance(node, ast.Call) or last_name(node.func) != "ModuleList" or len(node.args) != 1:
            return False
        return isinstance(node.args[0], ast.Attribute) and self.name_of(node.args[0]) == key

    def is_own(self, node: ast.expr) -> bool:
        """Whether an expression is what a known class of the repository has bound one of its attributes to, or an element of that."""
        while isinstance(node, ast.Subscript):
            node = node.value
        return isinstance(node, ast.Attribute) and bool(self.name_of(node)[2])

    def solve(self) -> None:
        """Find what all names stand for: each is what it is bound to, which may be other names, until nothing new is found."""
        keys = dict.fromkeys(("variable", *key[1:]) if key[0] == "loop" else key for key in (*self.bound, *self.parameters))
        todo = True
        while todo:
            todo = False
            for key in keys:
                for of, value in ((key, self._value(key)), (_elements_of(key), self._elements_value(key))):
                    if not value <= self._known.setdefault(of, frozenset()):
                        self._known[of] |= value
                        todo = True

    def _value(self, key: Name) -> frozenset[str]:
        of, name, owner = key
        through = [self.elements(*one).every for one in self.bound.get(("loop", name, owner), ())] if of == "variable" else []
        by_keyword = self.bound.get(("keyword", name, 0), ()) if key in self.parameters else ()
        return frozenset().union(*through, *(self._bound(name, *one) for one in (*self.bound.get(key, ()), *by_keyword)))

    def _elements_value(self, key: Name) -> frozenset[str]:
        of, name, owner = key
        if of not in ("attribute", "variable"):
            return frozenset()
        appended = self.bound.get(("appended", name, owner), ())
        return frozenset().union(*(self.elements(*one).every for one in self.bound.get(key, ())), *(self.of(*one) for one in appended))

    def _named(self, key: Name) -> frozenset[str]:
        """The layers that a name stands for; `UNKNOWN` where nothing says so."""
        is_bound = key in self.bound or ("loop" if key[0] == "variable" else "", *key[1:]) in self.bound
        is_bound = is_bound or (key in self.parameters and ("keyword", key[1], 0) in self.bound)
        return self._known.get(key, frozenset()) if is_bound else frozenset({UNKNOWN})

    def _bound(self, name: str, file: ParsedFile, value: ast.expr) -> frozenset[str]:
        if isinstance(value, ast.Attribute) and value.attr == name:
            return frozenset()  # `a.emb = b.emb` keeps nothing new under the name
        if isinstance(value, ast.Name) and value.id == name and self.name_of(value) not in self.bound:
            return frozenset()  # a parameter of a constructor that is only given by place
        return self.of(file, value)

    def of(self, file: ParsedFile, value: ast.expr) -> frozenset[str]:
        """The layers that an expression is one of; `UNKNOWN` where it may be another value, `OTHER` where it is no layer."""
        match value:
            case ast.Constant():
                return frozenset() if value.value is None else frozenset({OTHER})
            case ast.IfExp():
                return self.of(file, value.body) | self.of(file, value.orelse)
            case ast.BoolOp():
                return frozenset().union(*(self.of(file, part) for part in value.values))
            case ast.NamedExpr():
                return self.of(file, value.value)
            case ast.Call():
                return self._of_call(file, value)
            case ast.Name() | ast.Attribute():
                return self._named(self.name_of(value))
            case ast.Subscript():
                return self._of_element(file, value)
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.ListComp() | ast.DictComp() | ast.SetComp() | ast.GeneratorExp():
                return frozenset({OTHER})
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.JoinedStr() | ast.Lambda():
                return frozenset({OTHER})
        return frozenset({UNKNOWN})

    def _of_call(self, file: ParsedFile, call: ast.Call) -> frozenset[str]:
        if (name := dotted(file, call.func)) in layers():
            return frozenset({name})
        if call.args and (name.startswith(REPARAMETRIZATIONS) or name == "copy.deepcopy"):
            return self.of(file, call.args[0])
        if isinstance(call.func, ast.Attribute) and call.func.attr in SELF_RETURNING and not name:
            return self.of(file, call.func.value)
        if last_name(call.func) in self.own_classes or _gives_arrays(name):
            return frozenset({OTHER})
        if last_name(call.func) in self.functions:
            return self._known.get(("function", last_name(call.func), 0), frozenset())
        return frozenset({UNKNOWN}) if name else self.classes_of(file, call.func)

    def classes_of(self, file: ParsedFile, func: ast.expr) -> frozenset[str]:
        """The layers that a name stands for as a class, where it is called; none for a function of the repository."""
        return frozenset(self.classes[id(file)].get(last_name(func), {UNKNOWN}))

    def _of_element(self, file: ParsedFile, node: ast.Subscript) -> frozenset[str]:
        elements = self.elements(file, node.value)
        try:
            index = ast.literal_eval(node.slice)
        except ValueError:
            return elements.every
        is_known = isinstance(index, int) and -len(elements.ordered) <= index < len(elements.ordered)
        return elements.ordered[index] if is_known else elements.every

    def elements(self, file: ParsedFile, node: ast.expr) -> Elements:
        """The layers in what an expression stands for; `UNKNOWN` among them where it is no container that is written out."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return self._listed(file, node.elts)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return Elements(self.of(file, node.elt))
        if isinstance(node, ast.Call) and dotted(file, node.func) in HOLDERS:
            if len(node.args) == 1 and not isinstance(node.args[0], ast.Starred) and dotted(file, node.func) == HOLDERS[1]:
                return self.elements(file, node.args[0])
            return self._listed(file, node.args)
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return Elements(frozenset({UNKNOWN}))
        key = self.name_of(node)
        bound = self.bound.get(key, [])
        if not bound:
            return Elements(frozenset({UNKNOWN}))
        one_only = len(bound) == 1 and ("appended", *key[1:]) not in self.bound
        return Elements(self._known.get(_elements_of(key), frozenset()), self._ordered(key, bound[0]) if one_only else ())

    def _ordered(self, key: Name, bound: Bound) -> tuple[frozenset[str], ...]:
        """The layers at each place of what a name is bound to; none where that is made of the name itself, or is far to find."""
        if key in self._open or len(self._open) > LONGEST_WAY:
            return ()
        self._open.add(key)
        try:
            return self.elements(*bound).ordered
        finally:
            self._open.remove(key)

    def _listed(self, file: ParsedFile, parts_of_it: Sequence[ast.expr]) -> Elements:
        if any(isinstance(part, ast.Starred) for part in parts_of_it):
            return Elements(frozenset({UNKNOWN}))
        ordered = tuple(self.of(file, part) for part in parts_of_it)
        return Elements(frozenset().union(*ordered), ordered)


def _only(classes: Sequence[int]) -> int:
    """The one class that all are; 0 where they are several, or none."""
    return classes[0] if len(set(classes)) == 1 else 0


def _is_empty(value: ast.expr) -> bool:
    """Whether an expression is a container without elements: `[]`, `nn.ModuleList()`."""
    return (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Call) and not value.args and not value.keywords)


def layers_by_name(files: Collection[ParsedFile]) -> LayersByName:
    """What all names of a repository are bound to."""
    every = [node for file in files for node in ast.walk(file.tree)]
    named = LayersByName(
        own_classes=frozenset().union(*map(_own_classes, files)),
        having_parameters=_having_parameters(files),
        giving_several=frozenset(node.name for node in every if isinstance(node, ast.ClassDef) and _gives_several(node)),
        functions=frozenset(node.name for node in every if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))),
        own_attributes=frozenset(
            node.attr for node in every if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value)
        ),
    )
    definitions = [node for node in every if isinstance(node, ast.ClassDef)]
    often = Counter(node.name for node in definitions)
    named.by_class_name = {node.name: id(node) for node in definitions if often[node.name] == 1 and node.name in named.own_classes}
    parameters = _parameters(files)
    named.parameters = frozenset(
        ("variable", name, id(function)) for kinds in parameters.values() for function, names in kinds for name in names
    )
    for file in files:
        named.classes[id(file)] = _classes_by_name(file, named)
        for node in walk(file.tree):
            if isinstance(node, ast.ClassDef):
                # An inner class comes after the one around it.
                named.owners.update((id(part), id(node)) for part in walk(node))
            elif isinstance(node, ast.FunctionDef):
                named.scopes.update((id(part), id(node)) for statement in node.body for part in walk(statement))
        for target, value in bindings_of(file.tree):
            _add_binding(named, target, (file, value))
        for function, name, value in _arguments(file, parameters):
            named.add("variable", name, (file, value), function)
        for node in walk(file.tree):
            _add_elements(named, file, node)
    named.solve()
    return named


def _elements_of(key: Name) -> Name:
    return (f"elements of {key[0]}", key[1], key[2])


Signatures = Mapping[str, list[tuple[ast.FunctionDef, list[str]]]]


def _parameters(files: Collection[ParsedFile]) -> Signatures:
    """Function, or class that is constructed → the functions of that name, with the names of their parameters but `self`."""
    parameters: dict[str, list[tuple[ast.FunctionDef, list[str]]]] = {}
    for node in (node for file in files for node in walk(file.tree)):
        constructor = isinstance(node, ast.ClassDef) and next((one for one in node.body if getattr(one, "name", "") == "__init__"), None)
        function = constructor or node
        if isinstance(function, ast.FunctionDef) and isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
            parameters.setdefault(node.name, []).append((function, names[1:] if names[:1] in (["self"], ["cls"]) else names))
    return parameters


def _arguments(file: ParsedFile, parameters: Signatures) -> Iterator[tuple[int, str, ast.expr]]:
    """(function by `id`, parameter, what a call of the file gives it by place)."""
    for node in walk(file.tree):
        if isinstance(node, ast.Call) and not any(isinstance(argument, ast.Starred) for argument in node.args):
            for function, names in parameters.get(last_name(node.func), ()):
                yield from ((id(function), name, value) for name, value in zip(names, node.args, strict=False))


def _add_binding(named: LayersByName, target: ast.expr | str, bound: Bound) -> None:
    if isinstance(target, str):
        named.add("attribute", target, bound)
        named.add("variable", target, bound)
        named.add("keyword", target, bound)
    elif isinstance(target, ast.Name):
        for scope in {0, named.scopes.get(id(target), 0)}:
            named.add("variable", target.id, bound, scope)
    elif isinstance(target, ast.Attribute):
        named.add("attribute", target.attr, bound)
        if is_self(target.value) and (owner := named.owners.get(id(target))):
            named.add("attribute", target.attr, bound, owner)


def _add_elements(named: LayersByName, file: ParsedFile, node: ast.AST) -> None:
    """Note the elements that a statement takes from a container or adds to one, and what a function gives."""
    if isinstance(node, ast.FunctionDef):
        for one in walk(node):
            if isinstance(one, ast.Return) and one.value is not None:
                named.add("function", node.name, (file, one.value))
    elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
        for scope in {0, named.scopes.get(id(node.target), 0)}:
            named.add("loop", node.target.id, (file, node.iter), scope)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "insert"):
        holder = node.func.value
        for owner in {0, (named.owners if isinstance(holder, ast.Attribute) else named.scopes).get(id(holder), 0)}:
            named.add("appended", last_name(holder), (file, node.args[-1] if node.args else node), owner)


def bindings_of(tree: ast.AST) -> Iterator[tuple[ast.expr | str, ast.expr]]:
    """(attribute or variable, or the text of a keyword or entry; what is bound to it)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield from _pairs(node.target, node.value)
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value
        elif isinstance(node, ast.Dict):
            yield from ((key.value, value) for key, value in zip(node.keys, node.values, strict=True) if _is_text(key))  # type: ignore[union-attr]


def bound_values(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(name of an attribute, variable, keyword or entry; what is bound to it)."""
    yield from ((target if isinstance(target, str) else last_name(target), value) for target, value in bindings_of(tree))


def parts(node: ast.expr) -> list[ast.expr]:
    """The classes of an `isinstance` test: `(a, b)` and `a | b` are two."""
    if isinstance(node, (ast.Tuple, ast.Set, ast.List)):
        return [part for element in node.elts for part in parts(element)]
    if isinstance(node, ast.BinOp):
        return [*parts(node.left), *parts(node.right)]
    return [node]


def last_name(node: ast.expr) -> str:
    """The last name of a chain of attributes; "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_self(node: ast.expr) -> bool:
    """Whether an expression is `self`."""
    return isinstance(node, ast.Name) and node.id == "self"


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(attribute or variable, what is bound to it) of one assignment."""
    if isinstance(target, (ast.Attribute, ast.Name)):
        yield target, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        alike = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        values = value.elts if alike else [value] * len(target.elts)  # type: ignore[attr-defined]
        for one, its in zip(target.elts, values, strict=True):
            yield from _pairs(one, its)


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _gives_arrays(name: str) -> bool:
    """Whether a function of torch gives arrays, or a parameter."""
    of_functions = name.startswith(("torch.nn.functional.", "torch.nn.Parameter"))
    return of_functions or (name.startswith("torch.") and not name.startswith(NOT_ARRAYS))


def _own_classes(file: ParsedFile) -> set[str]:
    return {
        node.name
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ClassDef) and not any(dotted(file, base) in layers() for base in node.bases)
    }


def _having_parameters(files: Collection[ParsedFile]) -> dict[str, bool]:
    """Class of the repository's own → whether its instances may have one of `PARAMETERS`, by its own text or by what it derives from."""
    definitions = [(file, node) for file in files for node in ast.walk(file.tree) if isinstance(node, ast.ClassDef)]
    own = frozenset().union(*map(_own_classes, files))
    having = {
        node.name
        for file, node in definitions
        if _gives_itself_parameters(node) or not all(_is_known(file, base, own) for base in node.bases)
    }
    while more := {node.name for _, node in definitions if node.name not in having and having & {last_name(base) for base in node.bases}}:
        having |= more
    return {name: name in having for name in own}


def _is_known(file: ParsedFile, base: ast.expr, own: Collection[str]) -> bool:
    """Whether a base has no parameters that its class does not show: it is torch's module, a class of Python or of the repository."""
    return (
        last_name(base) in own
        or dotted(file, base) == "torch.nn.Module"
        or last_name(base) in ("object", "ABC", "Protocol", "Enum", "NamedTuple")
    )


def _gives_itself_parameters(node: ast.ClassDef) -> bool:
    """Whether a class binds `self.weight` or `self.bias`, defines them, or may have attributes under any name."""
    for part in walk(node):
        match part:
            case ast.Attribute(attr=name, ctx=ast.Store()) if name in PARAMETERS:
                return True
            case ast.FunctionDef(name=name) | ast.Name(id=name, ctx=ast.Store()) if name in (
                *PARAMETERS,
                "__getattr__",
                "__getattribute__",
            ):
                return True
            case ast.Call(func=func, args=args) if last_name(func) in ("setattr", "register_parameter", "register_buffer", "__setattr__"):
                named = {one.value for one in args if isinstance(one, ast.Constant) and isinstance(one.value, str)}
                if not named or named & set(PARAMETERS):
                    return True
    return False


def _gives_several(node: ast.ClassDef) -> bool:
    """Whether the `forward` of a class writes out a tuple or a dictionary that it gives, or makes one: `tuple(head(x) for head in self.heads)`."""
    forward = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "forward"), None)
    results = [one.value for one in walk(forward) if isinstance(one, ast.Return)] if forward else []
    made = [value for value in results if isinstance(value, ast.Call) and last_name(value.func) in ("tuple", "dict")]
    return bool(made) or any(isinstance(value, (ast.Tuple, ast.Dict, ast.DictComp)) for value in results)


def _classes_by_name(file: ParsedFile, named: LayersByName) -> dict[str, set[str]]:
    """Name of a parameter, variable or attribute of a file → the layers that it stands for, where it is one that is called: `norm_layer`."""
    classes: dict[str, set[str]] = {name: set() for name in named.functions}
    for node in ast.walk(file.tree):
        if isinstance(node, ast.arguments):
            listed = [*node.posonlyargs, *node.args]
            pairs = list(zip(listed[len(listed) - len(node.defaults) :], node.defaults, strict=True))
            pairs += [(one, default) for one, default in zip(node.kwonlyargs, node.kw_defaults, strict=True) if default is not None]
            for one, default in pairs:
                classes.setdefault(one.arg, set()).update(_classes(file, default, named))
            for one in listed[: len(listed) - len(node.defaults)]:
                # What callers of this file hand on is seen by its keyword; of others nothing is known.
                classes.setdefault(one.arg, set()).add(UNKNOWN)
    for name, value in bound_values(file.tree):
        classes.setdefault(name, set()).update(_classes(file, value, named))
    return {name: _resolved(classes, name) for name in classes}


def _resolved(classes: Mapping[str, set[str]], name: str) -> set[str]:
    """The layers that a name stands for, itself and by the names that it is bound to."""
    kinds: set[str] = set()
    names, todo = {name}, [name]
    while todo:
        for kind in classes.get(todo.pop(), {UNKNOWN}):
            other = kind.removeprefix(SAME_AS)
            if other == kind:
                kinds.add(kind)
            elif other not in names:
                names.add(other)
                todo.append(other)
    return kinds


def _classes(file: ParsedFile, value: ast.expr, named: LayersByName) -> set[str]:
    """The layers that an expression is a class of, or the name that it is; an instance, a function and `None` add nothing."""
    match value:
        case ast.IfExp():
            return _classes(file, value.body, named) | _classes(file, value.orelse, named)
        case ast.BoolOp():
            return set().union(*(_classes(file, part, named) for part in value.values))
        case ast.Call(args=[first, *_]) if ast.unparse(value.func) in ("partial", "functools.partial"):
            return _classes(file, first, named)
        case ast.Call() if dotted(file, value.func) in layers() or last_name(value.func) in named.own_classes:
            return set()
        case ast.Constant() | ast.Lambda():
            return set()
    if layer := dotted(file, value):
        mine = last_name(value) in named.own_classes | named.functions
        return {layer} if layer in layers() else set() if mine else {UNKNOWN}
    return {f"{SAME_AS}{other}" if (other := last_name(value)) else UNKNOWN}
