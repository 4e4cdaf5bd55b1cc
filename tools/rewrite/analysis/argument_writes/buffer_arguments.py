"""Finds the functions that change a buffer of their caller in place and give back something else: `y = batch_norm(x, self.running_mean)`.

Their result has no place for the new value, so their rewrites take the `nnx.Variable` itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.aliases import read_after, root, stale_aliases
from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import (
    Mutations,
    argument_names,
    callees,
    changes_in_place,
    first_names,
    own_nodes,
    parameter_at,
    tracked_statistics,
)
from migrate_agent.tools.rewrite.analysis.facts import Facts, is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo
from migrate_agent.tools.scan.nodes import walk

CALLED_OTHERWISE = frozenset({"forward", "backward", "__init__", "__call__"})
"""Functions that no call names."""


@dataclass
class BufferArguments:
    """Function → its parameters that take the variable itself (`taken`), those of them that it does more with than to hand them on (`used`),
    and those of its names that may stand for one (`names`): these parameters, other names for them, and local tensors that it hands on to such
    parameters and reads afterwards (`made`). `lent`: local tensors that are variables while such a call runs, and arrays before and after it.
    """

    taken: dict[FunctionKey, frozenset[str]] = field(default_factory=dict)
    used: dict[FunctionKey, frozenset[str]] = field(default_factory=dict)
    names: dict[FunctionKey, frozenset[str]] = field(default_factory=dict)
    made: dict[FunctionKey, frozenset[str]] = field(default_factory=dict)
    lent: dict[FunctionKey, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Handed:
    """A tensor that a call gets: the name in the caller, and the parameter that takes it; "" for one of torch's own functions."""

    call: ast.Call
    value: ast.expr
    callee: FunctionKey
    parameter: str

    @property
    def target(self) -> tuple[FunctionKey, str]:
        return self.callee, self.parameter


TORCH: FunctionKey = ("", "")


def lent_name(name: str) -> str:
    """The name of the variable that holds a local tensor for one call."""
    return f"{name}_variable"


class _Function:
    """One function, with the calls that change what they are handed."""

    def __init__(self, repo: Repo, file: FileModel, facts: Facts, name: str, node: FunctionNode, mutations: Mutations) -> None:
        self.key, self.node, self.file, self.facts = (file.file.path, name), node, file, facts
        self.parameters = argument_names(node)
        owner = file.classes.get(name.rpartition(".")[0])
        self.nested = [
            inner for inner in walk(node) if inner is not node and isinstance(inner, ast.FunctionDef | ast.Lambda | ast.ClassDef)
        ]
        self.nodes = own_nodes(node)
        calls = [one for one in self.nodes if isinstance(one, ast.Call)]
        self.handed = [row for call in calls for row in _handed(repo, file, facts, owner, call, mutations)]
        self.statements = {id(one.value) for one in self.nodes if isinstance(one, ast.Expr)}

    def first_names(self, parameter: str) -> frozenset[str]:
        """The parameter, and the other names for what the caller hands over."""
        return frozenset({parameter, *(one for one, first in first_names(self.node).items() if first == parameter)})

    def rebindings(self, name: str) -> list[ast.Name]:
        """Where the name gets another value; `name += x` keeps the tensor."""
        updated = {id(one.target) for one in self.nodes if isinstance(one, ast.AugAssign)}
        return [
            one
            for one in self.nodes
            if isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load) and id(one) not in updated
        ]

    def writes(self, name: str) -> Iterator[tuple[int, bool]]:
        """(last line, whether it is a statement by itself) of each change in place of the name's own tensor, calls of functions left aside."""
        for one in self.nodes:
            line = getattr(one, "end_lineno", 0) or 0
            match one:
                case ast.AugAssign(target=target) if root(target) == name:
                    yield line, True
                case ast.Assign(targets=targets) if any(isinstance(t, ast.Subscript) and root(t) == name for t in targets):
                    yield line, True
                case ast.Call(func=ast.Attribute(attr=attr, value=receiver)) if (
                    changes_in_place(attr) and root(_unchained(receiver)) == name
                ):
                    yield line, self._is_chained(one)
                case ast.keyword(arg="out", value=value) if root(value) == name:
                    yield value.end_lineno or 0, False

    def _is_chained(self, call: ast.Call) -> bool:
        """Whether a call, or one that goes on with its result (`x.mul_(2).add_(y)`), is a statement."""
        outer = (one for one in self.nodes if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call))
        return any(call in _chain(one.value) for one in outer)

    def is_simple(self, names: frozenset[str]) -> bool:
        """Whether the names are bound by plain assignments alone, no inner function reads them, and no loop goes through them."""
        stores = {id(target) for one in self.nodes if isinstance(one, ast.Assign) and len(one.targets) == 1 for target in one.targets}
        bound = [one for name in names for one in self.rebindings(name)]
        loops = [one.iter for one in self.nodes if isinstance(one, ast.For | ast.comprehension)]
        return (
            all(id(one) in stores for one in bound)
            and not any(root(walked) in names for walked in loops)
            and not any(names & _free_names(inner) for inner in self.nested)
        )

    def is_alone(self, names: frozenset[str], lines: list[int]) -> bool:
        """Whether no other name that is read later shares the memory of these where they are changed."""
        stale = (alias for name in names for line in lines for alias in stale_aliases(self.node, name, line))
        return all({alias.one, alias.other} <= names for alias in stale)

    def follows(self, parameter: str) -> bool:
        """Whether each change of a parameter's tensor can be written into a variable that stands in its place."""
        names = self.first_names(parameter)
        if self.key[1].rpartition(".")[2] in CALLED_OTHERWISE or isinstance(self.node, ast.AsyncFunctionDef) or not self.is_simple(names):
            return False
        if any(isinstance(one, ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal) for one in self.nodes):
            return False
        writes = [row for name in names for row in self.writes(name)]
        # Once the name stands for another tensor, a write to it no longer means the variable.
        if self.rebindings(parameter) and any(True for _ in self.writes(parameter)):
            return False
        calls = [row.call.end_lineno or 0 for row in self.handed if isinstance(row.value, ast.Name) and row.value.id in names]
        return all(alone for _, alone in writes) and self.is_alone(names, [*(line for line, _ in writes), *calls])

    def only_hands_on(self, parameter: str) -> bool:
        """Whether a function only asks whether what it was given is None, or of what shape, and hands it on for the last time."""
        last = {
            id(row.value)
            for row in self.handed
            if row.callee != TORCH and isinstance(row.value, ast.Name) and not read_after(self.node, row.value.id, row.call.end_lineno or 0)
        }
        tested = {id(one.value) for one in self.nodes if isinstance(one, ast.Attribute) and one.attr in ("shape", "ndim", "dtype")}
        for one in self.nodes:
            if isinstance(one, ast.Compare) and all(isinstance(operator, ast.Is | ast.IsNot) for operator in one.ops):
                tested.add(id(one.left))
        names = self.first_names(parameter)
        return all(id(one) in last | tested for one in self.nodes if isinstance(one, ast.Name) and one.id in names)

    def makes(self, row: _Handed) -> bool:
        """Whether a local tensor is handed on and read afterwards, and a variable can be made of it before the call."""
        if not isinstance(row.value, ast.Name) or not self._is_read_again(row, row.value):
            return False
        name, own = row.value.id, frozenset({row.value.id})
        return self.is_simple(own) and not any(True for _ in self.writes(name)) and self.is_alone(own, [row.call.end_lineno or 0])

    def lends(self, row: _Handed) -> bool:
        """Whether it can be a variable for this call alone: what else changes it in place, or binds the name anew, keeps to arrays."""
        if not isinstance(row.value, ast.Name) or self.makes(row) or not self._is_read_again(row, row.value):
            return False
        name, own = row.value.id, frozenset({row.value.id})
        (statement,) = (one for one in self._statements() if any(inner is row.call for inner in ast.walk(one)))
        if any(isinstance(one, ast.Name) and one.id == lent_name(name) for one in self.nodes):
            return False
        named = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == name]
        return (
            named == [row.value]
            and not any(own & _free_names(inner) for inner in self.nested)
            and self.is_alone(own, [row.call.end_lineno or 0])
        )

    def _is_read_again(self, row: _Handed, value: ast.Name) -> bool:
        """Whether a local tensor is handed on by a statement, and read afterwards."""
        if value.id in self.parameters and not self.rebindings(value.id):
            return False
        fact = self.facts.observed.get(span_of(value, self.file.lines))
        return is_tensor(fact) and read_after(self.node, value.id, row.call.end_lineno or 0) and not self._stands_in_test(row.call)

    def _statements(self) -> list[ast.stmt]:
        return [one for one in self.nodes if isinstance(one, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return)]

    def _stands_in_test(self, call: ast.Call) -> bool:
        """Whether a call stands where no statement can come right before it: in a test, a comprehension, the head of a loop."""
        around = [one for one in self._statements() if any(inner is call for inner in ast.walk(one))]
        comprehensions = [one for one in self.nodes if isinstance(one, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)]
        return not around or any(inner is call for one in comprehensions for inner in ast.walk(one))


def buffer_arguments(
    repo: Repo, facts: Mapping[str, Facts], mutations: Mutations, written: Mapping[FunctionKey, frozenset[str]]
) -> BufferArguments:
    """The functions that take variables, over all files."""
    functions = {
        (file.file.path, name): _Function(repo, file, facts[file.file.path], name, node, mutations)
        for file in repo.files.values()
        for name, node in file.functions.items()
    }
    possible = _possible(functions, mutations, written)
    result = BufferArguments()
    needed = _needed(functions, possible)
    for key, function in functions.items():
        result.taken[key] = frozenset(name for owner, name in needed if owner == key)
        result.used[key] = frozenset(name for name in result.taken[key] if not function.only_hands_on(name))
        handed = [row for row in function.handed if row.target in needed | {(TORCH, "")}]
        local = {row.value.id for row in handed if function.makes(row) and isinstance(row.value, ast.Name)}
        result.made[key] = frozenset(local)
        result.lent[key] = frozenset(row.value.id for row in handed if function.lends(row) and isinstance(row.value, ast.Name)) - local
        result.names[key] = frozenset(local).union(*(function.first_names(name) for name in result.taken[key]))
    return result


def _possible(
    functions: Mapping[FunctionKey, _Function], mutations: Mutations, written: Mapping[FunctionKey, frozenset[str]]
) -> set[tuple[FunctionKey, str]]:
    """(function, parameter) of what can take a variable: the function can, and all those to which it hands it on."""
    changed = {(key, name) for key, names in mutations.changed.items() for name in names - written.get(key, frozenset())}
    given_back = {(key, name) for key, name in changed if not _gives_result(functions[key].node)} - {
        (key, name) for key, names in mutations.out_of_reach.items() for name in names
    }
    possible = {(key, name) for key, name in changed - given_back if functions[key].follows(name)}
    while True:
        lost = {
            (key, name)
            for key, name in possible
            if not all(_goes_on(row, functions[key], name, possible, given_back) for row in functions[key].handed)
        }
        if not lost:
            return possible
        possible -= lost


def _goes_on(
    row: _Handed, function: _Function, name: str, possible: set[tuple[FunctionKey, str]], given_back: set[tuple[FunctionKey, str]]
) -> bool:
    """Whether what a parameter holds is not handed on by this call, or to what can take a variable, or to what gives its new value back."""
    if root(row.value) not in function.first_names(name):
        return True
    if row.target in given_back:
        return id(row.call) in function.statements
    return isinstance(row.value, ast.Name) and (row.callee == TORCH or row.target in possible)


def _needed(functions: Mapping[FunctionKey, _Function], possible: set[tuple[FunctionKey, str]]) -> set[tuple[FunctionKey, str]]:
    """Those of the possible ones that are handed a buffer, or a tensor that is read afterwards, and those to which they hand it on."""
    needed: set[tuple[FunctionKey, str]] = set()
    for function in functions.values():
        own = {one: name for key, name in possible if key == function.key for one in function.first_names(name)}
        for row in function.handed:
            if row.callee == TORCH:
                needed |= {(function.key, own[row.value.id])} if isinstance(row.value, ast.Name) and row.value.id in own else set()
            elif (isinstance(row.value, ast.Attribute) and "." in root(row.value)) or function.makes(row) or function.lends(row):
                needed |= {row.target} & possible
            elif (
                row.target in possible
                and isinstance(row.value, ast.Name)
                and row.value.id in own
                and read_after(function.node, row.value.id, row.call.end_lineno or 0)
            ):
                needed |= {row.target, (function.key, own[row.value.id])}
    while True:
        more = {
            row.target
            for key, name in needed
            for row in functions[key].handed
            if isinstance(row.value, ast.Name) and row.value.id in functions[key].first_names(name)
        } & possible
        if more <= needed:
            return needed
        needed |= more


def _handed(repo: Repo, file: FileModel, facts: Facts, owner: ClassModel | None, call: ast.Call, mutations: Mutations) -> Iterator[_Handed]:
    """What a call hands to parameters that are changed in place."""
    yield from (_Handed(call, value, TORCH, "") for value in tracked_statistics(facts.dotted.get(span_of(call.func, file.lines), ""), call))
    for key in callees(repo, file, facts, owner, call):
        rows = [(value, parameter_at(repo, key, position)) for position, value in enumerate(call.args)]
        rows += [(keyword.value, keyword.arg or "") for keyword in call.keywords]
        yield from (_Handed(call, value, key, name) for value, name in rows if name in mutations.changed.get(key, frozenset()))


def _gives_result(node: FunctionNode) -> bool:
    """Whether a function gives anything but None, or is left aside by what hands arguments back."""
    inner = ast.walk(node)
    return node.name in CALLED_OTHERWISE or any(
        isinstance(one, ast.Yield | ast.YieldFrom) or (isinstance(one, ast.Return) and one.value is not None) for one in inner
    )


def _free_names(node: ast.AST) -> set[str]:
    """The names that an inner function or class reads, and does not take as arguments."""
    arguments = node.args if isinstance(node, ast.FunctionDef | ast.Lambda) else None
    own = {one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg)} if arguments else set()
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - own


def _chain(node: ast.expr) -> list[ast.expr]:
    """A call, and the calls with whose results it goes on."""
    calls = [node]
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
        calls.append(node)
    return calls


def _unchained(node: ast.expr) -> ast.expr:
    """What the first of several calls in place (`x.mul_(2).add_(y)`) changes."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and changes_in_place(node.func.attr):
        node = node.func.value
    return node
