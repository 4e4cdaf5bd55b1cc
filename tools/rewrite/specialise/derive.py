"""Finds what can be specialised, until nothing more can, and recognises what was."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache

import libcst as cst

from migrate_agent.tools.rewrite.specialise.fold import Plan, folded, gives_back, gives_literal, is_idle
from migrate_agent.tools.rewrite.specialise.signatures import bases, constructor, definition, free_parameters, literal, provider, signature
from migrate_agent.tools.rewrite.specialise.usage import READ, VARIES, Calls, Usage, calls_in, values_passed
from migrate_agent.tools.rewrite.tables.helpers import symbols
from migrate_agent.tools.scan.symbols import global_names

KERNELS = "migrate_agent.tools.kernels"
MODES = frozenset({"deterministic", "use_running_average", "training"})
"""Attributes that `train()` and `eval()` set from outside."""


def derive(usage: Usage) -> dict[str, str]:
    """Name → text of each helper that the tree needs, specialised to the calls of it. No literal that any call passes otherwise is put in."""
    whole: frozenset[str] = frozenset()
    while True:
        reduction = _Reduction(usage, whole)
        while reduction.grow():
            pass
        # Only at the end: on the way a text may read parts of a literal that a later step folds.
        spoilt = reduction.spoilt()
        if not spoilt:
            return reduction.texts()
        whole |= spoilt


@dataclass
class _Reduction:
    """What is known to be constant. It only grows: each value that is put in decides more."""

    usage: Usage
    whole: frozenset[str]
    """Helpers that stay as they are: specialised, nothing but a literal would be left of them, or they would read what a literal has not."""
    bound: dict[str, dict[str, str]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    unread: dict[str, frozenset[str]] = field(default_factory=dict)
    """Class → its properties that nothing reads or sets."""
    idle: frozenset[str] = frozenset()
    same: frozenset[str] = frozenset()

    def texts(self) -> dict[str, str]:
        """The texts of the helpers that are reached."""
        texts: dict[str, str] = {}
        todo = sorted(self.usage.roots & symbols().keys())
        while todo:
            name = todo.pop()
            if name in texts:
                continue
            texts[name] = folded(name, self._plan(name))
            todo += [need for need in _needs(name, texts[name]) if need in symbols()]
        return texts

    def grow(self) -> bool:
        """Put in what is constant by now; whether there was anything new."""
        before = self._state()
        texts = self.texts()
        calls = [_calls(text) for text in texts.values()]
        fixed = self.usage.fixed.union(*(each.fixed for each in calls))
        passed: dict[str, dict[str, set[str]]] = {}
        for name, call in (pair for each in calls for pair in each.calls):
            for parameter, value in values_passed(name, call, self.bound.get(name, ())).items():
                passed.setdefault(name, {}).setdefault(parameter, set()).add(value)
        for name in sorted(texts.keys() - fixed):
            if constants := self._constants(name, passed.get(name, {}), texts[name]):
                self.bound.setdefault(name, {}).update(constants)
        self._unread_properties(texts)
        self._constant_attributes(texts)
        self._trivial(texts)
        return before != self._state()

    def _state(self) -> tuple[str, ...]:
        return tuple(map(repr, (self.bound, self.attributes, self.unread, self.idle, self.same)))

    def _plan(self, name: str) -> Plan:
        dropped = []
        for callee in sorted(_called(name)):
            if gone := self.bound.get(provider(callee)):
                dropped.append((callee, signature(provider(callee)).positional, frozenset(gone)))
        above = next(filter(None, map(provider, bases(name))), "")
        if above in self.bound and above not in {callee for callee, *_ in dropped}:
            dropped.append((above, signature(above).positional, frozenset(self.bound[above])))
        own = self.bound.get(name, {})
        attributes = self.attributes.get(name, {})
        mentioned = _called(name)
        return Plan(
            tuple(sorted(own.items())),
            tuple(sorted(attributes.items())),
            tuple(dropped),
            above,
            self.idle & mentioned,
            self.same & mentioned,
            self.unread.get(name, frozenset()),
        )

    def _constants(self, name: str, passed: Mapping[str, set[str]], text: str) -> dict[str, str]:
        """Parameter → text of the one literal that all calls pass; any literal where the helper's `text` does not read it any more."""
        declared, read = signature(name), _names_read(text)
        if name in self.whole or symbols()[name].folder == KERNELS:
            return {}
        by_tree = self.usage.passed.get(name, set())
        constants = {}
        for parameter in sorted((declared.free | _free(text)) & declared.names - by_tree - self.bound.get(name, {}).keys()):
            values = set(passed.get(parameter, ()))
            if name in self.usage.called or not values:
                values.add(declared.defaults.get(parameter, VARIES))
            if parameter not in read and VARIES not in values - {declared.defaults.get(parameter, VARIES)}:
                constants[parameter] = declared.defaults.get(parameter, "None")
            elif len(values) == 1 and not values & {VARIES, READ} and declared.takes(parameter, value := values.pop()):
                constants[parameter] = value
        return constants

    def _unread_properties(self, texts: Mapping[str, str]) -> None:
        used = _attributes_read(texts.values()) | self.usage.attributes | MODES
        for name, text in texts.items():
            remaining = self.usage.members.get(name, used)
            unread = {one for one in properties_of(_tree(text)) if one not in remaining and not _is_of_flax([name], one)}
            self.unread[name] = self.unread.get(name, frozenset()) | unread

    def _constant_attributes(self, texts: Mapping[str, str]) -> None:
        for family in _families(texts):
            stores = _stores([texts[name] for name in family])
            others = [text for name, text in texts.items() if name not in family]
            outside = _attributes_read(others, of_others=True) | self.usage.attributes | MODES
            inside = _attributes_loaded([texts[name] for name in family])
            for name in family:
                for attribute, value in _literal_attributes(texts[name]).items():
                    # A number that is read, such as a rate, is what people set on a layer later.
                    needed = attribute in outside or (_is_number(value) and attribute in inside)
                    needed = attribute in self.usage.members[name] if name in self.usage.members else needed
                    if stores.get(attribute) == 1 and not needed and not _is_of_flax(family, attribute):
                        for member in family:
                            self.attributes.setdefault(member, {})[attribute] = value

    def _trivial(self, texts: Mapping[str, str]) -> None:
        free = {name for name in texts if name not in self.usage.roots | self.usage.fixed}
        nodes = {name: _function(texts[name]) for name in free}
        self.idle |= {name for name, node in nodes.items() if node is not None and not node.decorators and is_idle(node)}
        self.same |= {name for name, node in nodes.items() if node is not None and not node.decorators and gives_back(node)}

    def spoilt(self) -> frozenset[str]:
        """Helpers that specialisation makes worse."""
        texts = self.texts()
        functions = {name: _function(text) for name, text in texts.items() if name not in self.usage.roots}
        empty = {name for name, node in functions.items() if node is not None and gives_literal(node)}
        return frozenset(self.bound.keys() & (empty | {name for name, text in texts.items() if _has_use_of_literal(text)}))


@lru_cache(maxsize=20_000)
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


@lru_cache(maxsize=20_000)
def _calls(text: str) -> Calls:
    return calls_in(_tree(text))


@cache
def _called(name: str) -> frozenset[str]:
    """The helpers that a helper's own text names."""
    return frozenset(_needs(name, symbols()[name].text))


@lru_cache(maxsize=20_000)
def _needs(name: str, text: str) -> frozenset[str]:
    symbol = symbols()[name]
    # What registers itself with a helper, such as its derivative, is named in no text of its.
    beside = symbol.needs - global_names(symbol.text)
    return frozenset((global_names(text) | beside) & symbols().keys())


def properties_of(tree: ast.AST) -> frozenset[str]:
    """The names of the properties of the classes in a tree."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return frozenset(node.name for node in functions if any(ast.unparse(one) == "property" for one in node.decorator_list))


def _families(texts: Mapping[str, str]) -> list[list[str]]:
    """Classes that inherit from each other, together."""
    classes = [name for name in texts if isinstance(definition(name), ast.ClassDef)]
    root = {name: name for name in classes}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for name in classes:
        for base in bases(name):
            if base in root:
                root[find(name)] = find(base)
    groups: dict[str, list[str]] = {}
    for name in sorted(classes):
        groups.setdefault(find(name), []).append(name)
    return list(groups.values())


def _stores(texts: Iterable[str]) -> Counter[str]:
    """Attribute → how often it is set or bound in the classes, under any name."""
    return sum(map(_stores_of, texts), Counter[str]())


@lru_cache(maxsize=20_000)
def _stores_of(text: str) -> Counter[str]:
    names = []
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            names.append(node.attr)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.append(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
    return Counter(names)


def _attributes_loaded(texts: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(_attributes_loaded_of, texts))


@lru_cache(maxsize=20_000)
def _attributes_loaded_of(text: str) -> frozenset[str]:
    nodes = ast.walk(_tree(text))
    return frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load))


def _is_number(text: str) -> bool:
    value = ast.literal_eval(text)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_stored(node: ast.Attribute) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _attributes_read(texts: Iterable[str], of_others: bool = False) -> frozenset[str]:
    """The names of attributes, and words that may name one; with `of_others` without those that a class has of its own instances."""
    return frozenset().union(*(_attributes_read_of(text, of_others) for text in texts))


@lru_cache(maxsize=20_000)
def _attributes_read_of(text: str, of_others: bool) -> frozenset[str]:
    tree = _tree(text)
    own = of_others and any(isinstance(node, ast.ClassDef) for node in tree.body)
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not (own and ast.unparse(node.value) == "self"):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    return frozenset(names)


def _function_of(text: str) -> ast.stmt | None:
    """The function, or the constructor of the class."""
    node = _tree(text).body[-1]
    return constructor(node) if isinstance(node, ast.ClassDef) else node


@lru_cache(maxsize=20_000)
def _free(text: str) -> frozenset[str]:
    function = _function_of(text)
    return free_parameters(function) if isinstance(function, ast.FunctionDef) else frozenset()


@lru_cache(maxsize=20_000)
def _names_read(text: str) -> frozenset[str]:
    """The names that a function, or the constructor of a class, reads in its body."""
    function = _function_of(text)
    body = function.body if isinstance(function, ast.FunctionDef) else []
    return frozenset(part.id for statement in body for part in ast.walk(statement) if isinstance(part, ast.Name))


@lru_cache(maxsize=20_000)
def _has_use_of_literal(text: str) -> bool:
    """Whether a text calls `None` or a number, or reads a part of it: on a path that nothing takes, but that no fold could rule out."""
    nodes = list(ast.walk(_tree(text)))
    used = [node.func for node in nodes if isinstance(node, ast.Call)]
    used += [node.value for node in nodes if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred))]
    return any(isinstance(node, ast.Constant) and not isinstance(node.value, (str, bytes)) for node in used)


@lru_cache(maxsize=20_000)
def _literal_attributes(text: str) -> Mapping[str, str]:
    """Attribute → text of the literal that the constructor sets it to, in a statement that always runs."""
    node = ast.parse(text).body[-1]
    function = constructor(node) if isinstance(node, ast.ClassDef) else None
    attributes: dict[str, str] = {}
    for statement in function.body if function is not None else ():
        target: ast.expr
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        else:
            continue
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for attribute, assigned in pairs:
            # NNX is told that a variable may come to stand there.
            text_of = "None" if ast.unparse(assigned) == "nnx.data(None)" else literal(assigned)
            if isinstance(attribute, ast.Attribute) and ast.unparse(attribute.value) == "self" and text_of is not None:
                attributes[attribute.attr] = text_of
    return attributes


def _is_of_flax(family: Iterable[str], attribute: str) -> bool:
    """Whether a class of Flax that a family inherits from knows the attribute."""
    for name in family:
        node = definition(name)
        for base in getattr(node, "bases", []):
            base = base.value if isinstance(base, ast.Subscript) else base
            text = ast.unparse(base)
            if text.startswith("nnx.") and re.search(rf"\bself\.{attribute}\b", _flax_source(text.removeprefix("nnx."))):
                return True
    return False


@cache
def _flax_source(name: str) -> str:
    from flax import nnx  # heavy, and `scan` needs none of it

    return inspect.getsource(getattr(nnx, name)) if name != "Module" else ""


@lru_cache(maxsize=20_000)
def _function(text: str) -> cst.FunctionDef | None:
    node = cst.parse_module(text).body[-1]
    return node if isinstance(node, cst.FunctionDef) else None


@lru_cache(maxsize=64)
def made_alike(text: str) -> Mapping[str, str]:
    """Name → the text that each helper of a file has, were it specialised to these signatures and attributes."""
    tree = ast.parse(text)
    nodes = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in symbols()}
    usage = Usage(set(nodes), attributes=set(_attributes_read([text])))
    for name, node in nodes.items():
        function = constructor(node) if isinstance(node, ast.ClassDef) else node
        arguments = function.args if function is not None else None
        listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs] if arguments is not None else []
        usage.passed[name] = {argument.arg for argument in listed}
        usage.members[name] = properties_of(node) | {
            part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute) and _is_stored(part)
        }
    return derive(usage)
