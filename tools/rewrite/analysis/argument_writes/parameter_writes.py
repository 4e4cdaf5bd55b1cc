"""Finds the functions that change a tensor of the caller through one of their parameters (`def
init(weight): nn.init.zeros_(weight)`).

Where that is a parameter of a module, the rewrite must pass the variable itself, not the array that
it holds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from migrate_agent.tools.rewrite.analysis.aliases import certain_aliases, is_reversible_view, reassigned_views
from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey, observed_functions, overrides
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.tables.registry import methods
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed

INIT = "torch.nn.init."
OLD_INITIALISERS = frozenset(
    "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal sparse".split()
)
"""Names of initialisers before torch 0.4, which torch still has: they write into their argument too."""
TRACKING = {
    "torch.nn.functional.batch_norm": (("input", "running_mean", "running_var", "weight", "bias", "training"), False),
    "torch.nn.functional.instance_norm": (("input", "running_mean", "running_var", "weight", "bias", "use_input_stats"), True),
}
"""Normalisation of torch → its first parameters, the last of which says whether it changes the running statistics, and that one's default."""


def written_parameters(repo: Repo, facts: Mapping[str, Facts]) -> dict[FunctionKey, frozenset[str]]:
    """Function → its parameters that it writes in place and that were a module's parameter each
    time (or were never observed).

    Fixed point over the calls of the repository: a function also writes what it passes on to one
    that writes.
    """
    written: dict[FunctionKey, frozenset[str]] = {}
    functions = [(file, name, node) for file in repo.files.values() for name, node in file.functions.items()]
    changed = True
    while changed:
        changed = False
        for file, name, node in functions:
            key = (file.file.path, name)
            names = frozenset(_written_names(repo, file, facts[file.file.path], name, node, written))
            if names != written.get(key, frozenset()):
                written[key], changed = names, True
    return written


def _written_names(
    repo: Repo, file: FileModel, facts: Facts, qualname: str, node: FunctionNode, written: Mapping[FunctionKey, frozenset[str]]
) -> Iterator[str]:
    names = set(argument_names(node))
    rebound = {n.id for n in walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    # What was a plain tensor in some call is handed back, in branches that did not run as well.
    rebound |= {n.id for n in walk(node) if isinstance(n, ast.Name) and n.id in names and _was_plain(facts, file, n)}
    owner = file.classes.get(qualname.rpartition(".")[0])
    for child in walk(node):
        if isinstance(child, ast.Subscript) and isinstance(child.ctx, ast.Store) and isinstance(child.value, ast.Name):
            fact = facts.observed.get(span_of(child.value, file.lines))
            # A name that was rebound stands for another tensor than the one passed in.
            if child.value.id in names - rebound and fact and set(fact.kinds) == {"parameter"}:
                yield child.value.id
        tensor = _given_data(child)
        if tensor is not None and tensor.id in names - rebound and _was_parameter(facts, file, node, tensor.id):
            yield tensor.id
        if not isinstance(child, ast.Call):
            continue
        for target, sure in _targets(repo, file, facts, owner, child, written):
            if isinstance(target, ast.Name) and target.id in names - rebound:
                fact = facts.observed.get(span_of(target, file.lines))
                if (fact is None and sure) or (fact and set(fact.kinds) == {"parameter"}):
                    yield target.id


def _given_data(node: ast.AST) -> ast.Name | None:
    """The name of a tensor whose data an assignment replaces or changes: `w.data = x`, `w.data *= x`, `w.data[0] = x`."""
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    target = node.target if isinstance(node, ast.AugAssign) else target
    inner = target.value if isinstance(target, ast.Subscript) else target
    named = strip_data(inner) if isinstance(inner, ast.Attribute) else None
    return named if isinstance(named, ast.Name) else None


def _was_parameter(facts: Facts, file: FileModel, function: FunctionNode, name: str) -> bool:
    """Whether a name of a function was seen to be a parameter of a module each time that it was seen, or None."""
    observed = [facts.observed.get(span_of(node, file.lines)) for node in walk(function) if isinstance(node, ast.Name) and node.id == name]
    kinds = {kind for fact in observed if fact is not None for kind in fact.kinds}
    return "parameter" in kinds and kinds <= {"parameter", "none"}


def _was_plain(facts: Facts, file: FileModel, name: ast.Name) -> bool:
    """Whether a name was seen to be a tensor that is no parameter of a module."""
    fact = facts.observed.get(span_of(name, file.lines))
    return fact is not None and "tensor" in fact.kinds


class Mutations(NamedTuple):
    """Function → its parameters whose tensor it changes in place (`changed`).

    `out_of_reach` are those of them that it changes through a view without an inverse, so that the
    new value cannot be computed.
    """

    changed: dict[FunctionKey, frozenset[str]]
    out_of_reach: dict[FunctionKey, frozenset[str]]


def mutated_parameters(repo: Repo, facts: Mapping[str, Facts]) -> Mutations:
    """The parameters whose tensor a function changes in place while the caller may hold it. In JAX
    the caller keeps the old array.
    """
    mutations = Mutations({}, {})
    functions = [(file, name, node) for file in repo.files.values() for name, node in file.functions.items()]
    changed = True
    while changed:
        changed = False
        for file, name, node in functions:
            key = (file.file.path, name)
            rows = dict(_mutated_names(repo, file, facts[file.file.path], name, node, mutations))
            inexact = frozenset(one for one, exact in rows.items() if not exact)
            changed |= rows.keys() != mutations.changed.get(key, frozenset()) or inexact != mutations.out_of_reach.get(key, frozenset())
            mutations.changed[key], mutations.out_of_reach[key] = frozenset(rows), inexact
    return mutations


def _mutated_names(
    repo: Repo, file: FileModel, facts: Facts, qualname: str, node: FunctionNode, mutations: Mutations
) -> Iterator[tuple[str, bool]]:
    """(parameter, whether its new value can be computed) for each parameter changed in place; those
    that cannot come last.
    """
    names = set(argument_names(node))
    # `x += 1` and `x = x.view(…)` keep the memory of the argument, unlike other assignments.
    in_place = {id(child.target) for child in walk(node) if isinstance(child, ast.AugAssign)} | {id(t) for t in reassigned_views(node)}
    stores = [n for n in own_nodes(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) and id(n) not in in_place]
    rebound = {n.id for n in stores}
    owner = file.classes.get(qualname.rpartition(".")[0])
    first = first_names(node)
    results: list[tuple[str, bool]] = []
    for child in walk(node):
        targets: list[ast.expr] = []
        lost: set[int] = set()
        if isinstance(child, ast.AugAssign):
            targets = [child.target.value if isinstance(child.target, ast.Subscript) else child.target]
        elif isinstance(child, ast.Assign):
            targets = [target.value for target in child.targets if isinstance(target, ast.Subscript)]
        elif isinstance(child, ast.Call):
            targets = [target for target, _ in _targets(repo, file, facts, owner, child, mutations.changed)]
            lost = {id(target) for target, _ in _targets(repo, file, facts, owner, child, mutations.out_of_reach)} - {
                id(target) for target, _ in _targets(repo, file, facts, owner, child, {})
            }
        for changed in targets:
            inner = strip_views(changed)
            fact = facts.observed.get(span_of(inner, file.lines)) if isinstance(inner, ast.Name) else None
            if isinstance(inner, ast.Name) and fact is not None and "tensor" in fact.kinds:
                shared = certain_aliases(node, inner.id, inner.lineno)
                results += [(one, exact and id(changed) not in lost) for one, exact in shared.items() if one in names - rebound]
                # `kept = x`, and then another `x`: the caller's tensor has no name that could be handed back.
                results += [(one, False) for one in {first.get(inner.id, "")} & rebound]
                # `x += 1`, and then another `x`.
                if inner.id in names & rebound and all(store.lineno > inner.lineno for store in stores if store.id == inner.id):
                    results.append((inner.id, False))
    # The caller builds a dict of them: the last entry wins, and that must be the pessimistic one.
    yield from sorted(results, key=lambda row: not row[1])


def _targets(
    repo: Repo, file: FileModel, facts: Facts, owner: ClassModel | None, call: ast.Call, written: Mapping[FunctionKey, frozenset[str]]
) -> Iterator[tuple[ast.expr, bool]]:
    """(expression that a call writes to, whether it writes for any kind of value)."""
    dotted = facts.dotted.get(span_of(call.func, file.lines), "")
    if dotted.startswith(INIT) and (dotted.endswith("_") or dotted.removeprefix(INIT) in OLD_INITIALISERS):
        tensor = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "tensor"), None)
        if tensor is not None:
            yield strip_data(tensor), True
    # Of an unknown receiver a name with an underscore proves little: `fill_` may be anyone's
    # method.
    elif isinstance(call.func, ast.Attribute) and not dotted and call.func.attr.endswith("_") and changes_in_place(call.func.attr):
        yield strip_data(call.func.value), False
    yield from ((value, False) for value in tracked_statistics(dotted, call))
    for key in callees(repo, file, facts, owner, call):
        yield from ((value, True) for value in arguments_for(repo, key, call, written.get(key, frozenset())))


def tracked_statistics(dotted: str, call: ast.Call) -> list[ast.expr]:
    """The running statistics that a call of torch's own normalisation changes in training.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.batch_norm.html
    """
    if dotted not in TRACKING:
        return []
    names, default = TRACKING[dotted]
    arguments = dict(zip(names, call.args, strict=False)) | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    training = arguments.get(names[5])
    if default if training is None else not (isinstance(training, ast.Constant) and training.value is False):
        return [value for name, value in arguments.items() if name in names[1:3]]
    return []


def own_nodes(function: FunctionNode) -> list[ast.AST]:
    """The nodes of a function that are not inside of functions and classes in it."""
    nested = (one for one in walk(function) if one is not function and isinstance(one, ast.FunctionDef | ast.Lambda | ast.ClassDef))
    inside = {id(node) for one in nested for node in ast.walk(one)}
    return [node for node in walk(function) if id(node) not in inside]


def first_names(node: FunctionNode) -> dict[str, str]:
    """Other name → the parameter whose tensor it stands for: `kept = x`, the only assignment of `kept`, before `x` is bound anew."""
    parameters = set(argument_names(node))
    stores: dict[str, list[int]] = {}
    for one in own_nodes(node):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            stores.setdefault(one.id, []).append(one.lineno)
    loops = [one for one in walk(node) if isinstance(one, (ast.For, ast.While))]
    others: dict[str, str] = {}
    for one in own_nodes(node):
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=first)) if first in parameters and name not in parameters:
                repeated = any(loop.lineno <= one.lineno <= (loop.end_lineno or 0) for loop in loops)
                if len(stores[name]) == 1 and not repeated and all(line > one.lineno for line in stores.get(first, ())):
                    others[name] = first
    return others


def changes_in_place(name: str) -> bool:
    """Whether a tensor method of this name changes its receiver."""
    row = methods().get(name) or methods().get(name[:-1]) if name.endswith("_") and not name.endswith("__") else None
    return row is not None and row.inplace


def strip_data(node: ast.expr) -> ast.expr:
    """`w.data` and `torch.as_tensor(w)` → `w`."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "as_tensor" and len(node.args) == 1:
            node = node.args[0]
        else:
            return node


def strip_views(node: ast.expr) -> ast.expr:
    """`x[:, 0]` → `x`, `x.view(-1)` → `x`: the base of a view."""
    while is_reversible_view(node) and not isinstance(node, ast.Name):
        inner = node.func if isinstance(node, ast.Call) else node
        assert isinstance(inner, (ast.Attribute, ast.Subscript))
        node = inner.value
    return node


def callees(repo: Repo, file: FileModel, facts: Facts, owner: ClassModel | None, call: ast.Call) -> list[FunctionKey]:
    """The functions of the repository that a call by name, of a method of `self` or of a plain
    object, may reach.
    """
    span = span_of(call.func, file.lines)
    dotted = facts.dotted.get(span, "")
    if dotted and (definition := repo.resolve(dotted)) and definition[1]:
        return [(definition[0].file.path, definition[1])]
    func = call.func
    if owner and isinstance(func, ast.Attribute) and id(func) in owner.own:
        return [(m.file.file.path, f"{m.qualname}.{func.attr}") for m in overrides(repo, owner, func.attr)]
    fact = facts.observed.get(span)
    return sorted(observed_functions(repo, fact) | inner_functions(repo, fact))


def inner_functions(repo: Repo, fact: Observed | None) -> set[FunctionKey]:
    """The function inside another one that a value was observed to be."""
    keys: set[FunctionKey] = set()
    for kind in fact.kinds if fact else ():
        outer, separator, name = kind.removeprefix("function:").partition(".<locals>.")
        definition = repo.resolve(outer) if separator and kind.startswith("function:") else None
        if definition and f"{definition[1]}.{name}" in definition[0].functions:
            keys.add((definition[0].file.path, f"{definition[1]}.{name}"))
    return keys


def arguments_for(repo: Repo, key: FunctionKey, call: ast.Call, names: frozenset[str]) -> list[ast.expr]:
    """The arguments of a call that go to these parameters of the function."""
    return [value for position, value in enumerate(call.args) if parameter_at(repo, key, position) in names] + [
        keyword.value for keyword in call.keywords if keyword.arg in names
    ]


def parameter_at(repo: Repo, key: FunctionKey, position: int) -> str:
    """The name of the parameter that takes the positional argument at `position`; "" where there is none."""
    node = repo.files[key[0]].functions.get(key[1])
    if node is None:
        return ""
    names = argument_names(node)
    method = "." in key[1] and key[1].rpartition(".")[0] in repo.files[key[0]].classes
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    # A call on an instance leaves out `self`.
    index = position + (1 if method and not static else 0)
    return names[index] if index < len(names) else ""


def argument_names(node: FunctionNode) -> list[str]:
    """Positional parameters, then keyword-only ones."""
    return [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def list_assignment(function: ast.AST, walked: ast.expr) -> ast.Assign | None:
    """The only assignment of the list that a loop iterates over, where the list is used by loops
    alone; `None` otherwise.
    """
    if not isinstance(walked, ast.Name):
        return None
    stores = [
        n for n in walk(function) if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == walked.id for t in n.targets)
    ]
    walked_by = {id(n.iter) for n in walk(function) if isinstance(n, ast.For)}
    used = [n for n in walk(function) if isinstance(n, ast.Name) and n.id == walked.id and id(n) not in walked_by]
    return stores[0] if len(stores) == 1 and len(used) == 1 and len(stores[0].targets) == 1 else None


def walks_parameters(
    repo: Repo, file: FileModel, facts: Facts, written: Mapping[FunctionKey, frozenset[str]], function: ast.AST, loop: ast.For
) -> bool:
    """Whether a loop iterates over attributes and changes them in place, as `for p in [m.a, m.b]:
    p.data.zero_()` does.
    """
    store = list_assignment(function, loop.iter)
    walked = store.value if store else loop.iter
    if not isinstance(loop.target, ast.Name) or not isinstance(walked, (ast.List, ast.Tuple)):
        return False
    if not walked.elts or not all(isinstance(e, ast.Attribute) for e in walked.elts):
        return False
    name = loop.target.id
    inside = [node for statement in loop.body for node in walk(statement)]
    for tensor in filter(None, map(_given_data, inside)):
        fact = facts.observed.get(span_of(tensor, file.lines))
        if tensor.id == name and fact is not None and set(fact.kinds) == {"parameter"}:
            return True
    for child in (node for node in inside if isinstance(node, ast.Call)):
        dotted = facts.dotted.get(span_of(child.func, file.lines), "")
        if dotted.startswith(INIT):
            target = strip_data(child.args[0]) if child.args else None
            target = target.value if isinstance(target, ast.Subscript) else target
        elif isinstance(child.func, ast.Attribute) and changes_in_place(child.func.attr):
            target = strip_data(child.func.value)
            fact = facts.observed.get(span_of(target, file.lines))
            if isinstance(child.func.value, ast.Name) and (fact is None or set(fact.kinds) != {"parameter"}):
                continue
        else:
            values = [
                v for key in callees(repo, file, facts, None, child) for v in arguments_for(repo, key, child, written.get(key, frozenset()))
            ]
            target = next((v for v in values if isinstance(v, ast.Name) and v.id == name), None)
        if isinstance(target, ast.Name) and target.id == name:
            return True
    return False
