"""Finds the attributes that a call of a module sets before anything reads them, such as attention
weights kept for inspection or the statistics that a second method takes away again.

They are no state: what an earlier call left there is never computed with.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.counters import counters
from migrate_agent.tools.rewrite.analysis.facts import INT, Facts, span_of
from migrate_agent.tools.rewrite.analysis.memos import memos
from migrate_agent.tools.rewrite.analysis.randomness import Randomness
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, Repo
from migrate_agent.tools.rewrite.analysis.size_guards import size_guards
from migrate_agent.tools.scan.accelerators import runs_on_cuda
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed

CREATING = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "tensor"))
PLAIN = frozenset({"int", "float", "bool", "tuple", "size", "list"})
"""Kinds of values that an `nnx.Intermediate` holds as they are."""
CHANGING = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"})
REFLECTING = frozenset({"getattr", "hasattr", "setattr", "delattr"})


@dataclass(frozen=True)
class _Store:
    """`self.<name> = value` in a method; with `unpacked`, the attribute gets one part of the value."""

    model: ClassModel
    method: str
    name: str
    value: ast.expr
    unpacked: bool = False


@dataclass
class _Family:
    """Classes that derive from one another, and what they do with their attributes."""

    models: list[ClassModel]
    stores: list[_Store] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)
    """Attributes that are set, changed or looked up in a form that is not followed."""


def intermediates(
    repo: Repo, facts: Mapping[str, Facts], randomness: Randomness, observed_lines: Callable[[str], Set[int]] = lambda path: frozenset()
) -> dict[str, dict[str, bool]]:
    """Class id → attribute that holds an intermediate → whether that is an array, and not a size or a list.

    `observed_lines` of a file are those on which something ran while the examples did: what a store or a read elsewhere is, nobody has seen, and
    it decides nothing.
    """
    found: dict[str, dict[str, bool]] = {}
    uses = _uses(repo)
    for file in repo.files.values():
        for model in file.classes.values():
            if model.id in found or not repo.is_module_class(model):
                continue
            family = _family(repo, model)
            names = {store.name for store in family.stores if _is_live(store.model, store.method, randomness)} - family.blocked
            kinds = {name: _kind(repo, family, name, uses.get(name, ()), facts, randomness, observed_lines) for name in sorted(names)}
            rows = {name: kind for name, kind in kinds.items() if kind is not None}
            found.update({one.id: rows for one in family.models})
    return found


def _family(repo: Repo, model: ClassModel) -> _Family:
    members: dict[str, ClassModel] = {}
    todo = [model]
    while todo:
        current = todo.pop()
        if current.id not in members:
            members[current.id] = current
            todo += [*repo.ancestors(current), *repo.descendants.get(current.id, ())]
    family = _Family(list(members.values()))
    for one in family.models:
        _collect(one, family)
    return family


def _collect(model: ClassModel, family: _Family) -> None:
    """Note the stores of one class, and what is set in any other form."""
    for method, function in model.methods.items():
        followed: set[int] = set()
        for node in walk(function):
            pairs = list(_pairs(node))
            family.stores += [_Store(model, method, model.own[id(t)], value, part) for t, value, part in pairs if id(t) in model.own]
            followed |= {id(target) for target, *_ in pairs}
            family.blocked |= set(_changed(node))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REFLECTING:
                # `getattr(self, "attention")` would read an `nnx.Intermediate` where it expects an array.
                family.blocked |= {a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
        unfollowed = [
            n for n in walk(function) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load) and id(n) not in followed
        ]
        family.blocked |= {node.attr for node in unfollowed}
    family.blocked |= set(model.buffers)


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """(target, value, whether it gets one part of it) for what a statement assigns, tuples taken apart."""
    match node:
        case ast.AnnAssign(target=target, value=value):
            yield target, value or ast.Constant(None), False
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            yield from ((target, value, False) for target, value in zip(targets, values, strict=True))
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            yield from ((target, value, True) for target in targets)
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value, False) for target in targets if not isinstance(target, ast.Tuple))


def _changed(node: ast.AST) -> Iterator[str]:
    """The attribute whose tensor an expression or statement changes in place."""
    inner: ast.expr | None = None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        inner = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        inner = node.func.value
    while isinstance(inner, ast.Subscript) or (isinstance(inner, ast.Attribute) and inner.attr in ("data", "T")):
        inner = inner.value
    if isinstance(inner, ast.Attribute):
        yield inner.attr


def _is_live(model: ClassModel, method: str, randomness: Randomness) -> bool:
    key = (model.file.file.path, f"{model.qualname}.{method}")
    return method != "__init__" and key in randomness.live and key not in randomness.constructing


@dataclass(frozen=True)
class _Use:
    """Where an attribute of some name is read, on whatever object, in which functions, and what its value is used in."""

    file: FileModel
    node: ast.Attribute
    functions: tuple[str, ...]
    around: tuple[ast.AST, ...]
    """The node's parent, and that one's, as far as the statement."""


def _uses(repo: Repo) -> dict[str, list[_Use]]:
    uses: dict[str, list[_Use]] = {}
    for file in repo.files.values():
        functions: dict[int, tuple[str, ...]] = {}
        for name, function in file.functions.items():
            for node in walk(function):
                if isinstance(node, ast.Attribute):
                    functions[id(node)] = (*functions.get(id(node), ()), name)
        parents = {id(child): node for node in walk(file.tree) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)}
        for node in walk(file.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                uses.setdefault(node.attr, []).append(_Use(file, node, functions.get(id(node), ()), tuple(_around(node, parents))))
    return uses


def _around(node: ast.AST, parents: Mapping[int, ast.AST]) -> Iterator[ast.AST]:
    for _ in range(3):
        if id(node) not in parents:
            return
        node = parents[id(node)]
        yield node


def _has_run(path: str, node: ast.expr, observed_lines: Callable[[str], Set[int]]) -> bool:
    """Whether an expression ran, or may have; a constant leaves no trace."""
    lines = observed_lines(path)
    return not lines or isinstance(node, ast.Constant) or any(node.lineno <= line <= (node.end_lineno or node.lineno) for line in lines)


def _kind(
    repo: Repo,
    family: _Family,
    name: str,
    uses: list[_Use] | tuple[()],
    facts: Mapping[str, Facts],
    randomness: Randomness,
    observed_lines: Callable[[str], Set[int]],
) -> bool | None:
    """Whether an attribute holds an array, or something plain; `None` where it is no intermediate."""
    # What CUDA alone sets is never set in JAX.
    stores = [store for store in family.stores if store.name == name and not runs_on_cuda(store.model.file.tree, store.value)]
    live = [
        store
        for store in stores
        if _is_live(store.model, store.method, randomness) and _has_run(store.model.file.file.path, store.value, observed_lines)
    ]
    kinds = {_kind_of(_fact(store, facts)) for store in live}
    if len(kinds) != 1 or (kind := kinds.pop()) is None or _has_own_rule(repo, family, name, facts, randomness):
        return None
    starts = [store for store in stores if store.method == "__init__" or _constructs(store, randomness)]
    # A guard that asks whether a size is another one goes, and with it the need of a first value.
    guards = [guard for one in family.models for guard in size_guards(repo, one, facts[one.file.file.path]) if guard.key == name]
    if not guards and not all(_starts_empty(store, kind, facts) for store in starts):
        return None
    # What starts as a real array may be state that the first call reads: only reads after a method's own store are sure.
    strict = any(_is_array(store, facts) for store in starts)
    reads = [
        use
        for use in uses
        if not any(id(use.node) in guard.asked for guard in guards)
        and any((use.file.file.path, function) in randomness.live for function in use.functions)
        and _has_run(use.file.file.path, use.node, observed_lines)
    ]
    if not all(_reads_intermediate(repo, family, use, kind, facts) for use in reads):
        return None
    if strict and not all(_follows_store(use, stores) for use in reads):
        return None
    return kind


def _has_own_rule(repo: Repo, family: _Family, name: str, facts: Mapping[str, Facts], randomness: Randomness) -> bool:
    """Whether the attribute only saves work, or counts calls."""
    tables = [
        (memos(repo, one, facts[one.file.file.path]), counters(repo, one, facts[one.file.file.path], randomness)) for one in family.models
    ]
    return any(name in table for pair in tables for table in pair)


def _constructs(store: _Store, randomness: Randomness) -> bool:
    return (store.model.file.file.path, f"{store.model.qualname}.{store.method}") in randomness.constructing


def _fact(store: _Store, facts: Mapping[str, Facts]) -> Observed | None:
    """What a store puts on the module."""
    fact = facts[store.model.file.file.path].observed.get(span_of(store.value, store.model.file.lines))
    if not store.unpacked or fact is None:
        return fact
    return INT if fact.kinds == ("size",) else store.model.attributes.get(store.name)


def _kind_of(fact: Observed | None) -> bool | None:
    kinds = set(fact.kinds) if fact else set()
    return True if kinds == {"tensor"} else False if kinds and kinds <= PLAIN else None


def _starts_empty(store: _Store, kind: bool, facts: Mapping[str, Facts]) -> bool:
    """Whether the constructor gives the attribute nothing that a call could go on from."""
    match store.value:
        case ast.Constant(value=None):
            return store.method == "__init__"
        case ast.Constant(value=int() | float()):
            # Each read was seen to be an array, so none comes before the first store.
            return kind and store.method == "__init__"
        case ast.List(elts=[]):
            return not kind and store.method == "__init__"
    return kind and store.method == "__init__" and _is_array(store, facts)


def _is_array(store: _Store, facts: Mapping[str, Facts]) -> bool:
    if not isinstance(store.value, ast.Call):
        return False
    return facts[store.model.file.file.path].dotted.get(span_of(store.value.func, store.model.file.lines), "") in CREATING


def _reads_intermediate(repo: Repo, family: _Family, use: _Use, kind: bool, facts: Mapping[str, Facts]) -> bool:
    """Whether a read is of these classes and gives what a call has stored, or is one of another object."""
    known, lines = facts[use.file.file.path].observed, use.file.lines
    owner = known.get(span_of(use.node.value, lines))
    if not any(id(use.node) in model.own for model in family.models):
        if owner is None:
            # `torch.mean` and `x.mean()` read no attribute of these classes; neither does a file that knows nothing of them.
            called = bool(use.around) and isinstance(use.around[0], ast.Call) and use.around[0].func is use.node
            return called or span_of(use.node, lines) in facts[use.file.file.path].dotted or not _knows(repo, use.file, family)
        classes = [repo.class_of(one.removeprefix("module:")) if one.startswith("module:") else None for one in owner.kinds]
        inside = [model is not None and any(model.id == one.id for one in family.models) for model in classes]
        if not any(inside):
            return True
        if not all(inside):
            return False
    return _kind_of(known.get(span_of(use.node, lines))) == kind and (kind or not _is_shared(use))


def _knows(repo: Repo, file: FileModel, family: _Family) -> bool:
    """Whether a file defines one of the classes, or imports a file that does."""
    paths = {model.file.file.path for model in family.models}
    return file.file.path in paths or bool(paths & set(file.file.imports))


def _is_shared(use: _Use) -> bool:
    """Whether a list may be changed under another name or in a form that is not followed: all but `self.parts.append(x)`."""
    match use.around:
        case [ast.Attribute(attr=method), ast.Call(), statement]:
            return method in CHANGING and not (method == "append" and isinstance(statement, ast.Expr))
        case [ast.Attribute(attr=method), *_]:
            return method in CHANGING
    return bool(use.around) and isinstance(use.around[0], ast.Assign | ast.AnnAssign | ast.NamedExpr)


def _follows_store(use: _Use, stores: list[_Store]) -> bool:
    """Whether the method that reads has set the attribute before, in a statement of its own body."""
    for store in stores:
        function = store.model.methods[store.method]
        if store.model.own.get(id(use.node)) != store.name or not any(node is use.node for node in walk(function)):
            continue
        if any(_sets(s, store) and (s.end_lineno or s.lineno) < use.node.lineno for s in function.body):
            return True
    return False


def _sets(statement: ast.stmt, store: _Store) -> bool:
    return any(store.model.own.get(id(target)) == store.name for target, *_ in _pairs(statement))
