"""What code reads of one of its parameters, by attribute and by key, through all functions and classes that it hands it on to."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

from migrate_agent.tools.record.guessing.choices import nodes_of, value_of_name
from migrate_agent.tools.record.guessing.trials.trial import parameters

HANDED = 3
"""Through how many constructors a configuration is followed."""
OF_VALUES = frozenset(
    "lower upper split strip startswith endswith format items keys values get append copy index count replace type dtype".split()
)
"""Attributes that words, lists, dictionaries and devices have themselves: no settings."""
Steps = tuple[tuple[str, bool], ...]
"""A chain of reads: each a name, and whether it is a key."""


@dataclass
class Reads:
    """Names that are read of a value → what is read of these."""

    attributes: dict[str, Reads] = field(default_factory=dict)
    keys: dict[str, Reads] = field(default_factory=dict)
    called: bool = False
    """Whether it is called without arguments."""

    def add(self, steps: Steps) -> Reads:
        """Note a chain of reads. Returns what is noted of its end."""
        node = self
        for name, is_key in steps:
            node = (node.keys if is_key else node.attributes).setdefault(name, Reads())
        return node


class Holder(NamedTuple):
    """A class or function that is handed what lies at a `path` below the parameter, under a name of its own."""

    code: Any
    name: str
    path: Steps = ()


def reads_of(holders: Collection[Holder]) -> Reads:
    """All that these read of their parameters."""
    reads = Reads()
    for holder in holders:
        names = aliases(holder)
        for node in nodes_of(holder.code):
            if isinstance(node, ast.Attribute | ast.Subscript | ast.Call) and (steps := _steps(node, names)):
                reads.add(steps)
            match node:
                case ast.Call(func=ast.Attribute() as method, args=[], keywords=[]) if steps := _steps(method, names):
                    reads.add(steps).called = True
    return reads


def aliases(holder: Holder) -> dict[str, Steps]:
    """Names of the parameter, and of parts of it that are kept in variables or attributes → where these lie."""
    names: dict[str, Steps] = {holder.name: holder.path}
    assigned = [pair for node in nodes_of(holder.code) if isinstance(node, ast.Assign | ast.AnnAssign) for pair in _pairs(node)]
    for _ in range(2):  # nodes come breadth first: what is read before it is found is found in the second round
        for target, value in assigned:
            other = target.id if isinstance(target, ast.Name) else target.attr if _is_own(target) else ""
            steps = _steps(value, names)
            if other and steps is not None and other not in names:
                names[other] = steps
    return names


def _pairs(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is assigned to what, one by one."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            yield from zip(targets, values, strict=True)
        case ast.Assign(targets=[target], value=value):
            yield target, value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value


def _is_own(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _steps(node: ast.AST, names: Mapping[str, Steps]) -> Steps | None:
    """Where below the parameter an expression lies; None where elsewhere."""
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
            return names.get(name)
        case ast.Attribute(value=owner, attr=attribute, ctx=ast.Load()) if attribute not in OF_VALUES:
            return _below(_steps(owner, names), attribute, False)
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(key)), ctx=ast.Load()):
            return _below(_steps(owner, names), key, True)
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str(key)), *_]):
            return _below(_steps(owner, names), key, True)
    return None


def _below(steps: Steps | None, name: str, is_key: bool) -> Steps | None:
    return None if steps is None else (*steps, (name, is_key))


def handed_on(holder: Holder, depth: int = HANDED) -> Iterator[Holder]:
    """A class or function, and those of the same program to which it hands its parameter, or a part of it."""
    yield holder
    code = holder.code
    module_names = names_around(code)
    names = aliases(holder) if depth else {}
    for node in nodes_of(code) if depth else ():
        if not isinstance(node, ast.Call) or not any(_steps(value, names) is not None for value in _values(node)):
            continue
        called = _own_method(code, node.func) or value_of_name(node.func, module_names)
        if (inspect.isclass(called) or inspect.isfunction(called)) and called is not code and not _is_torch(called):
            for other, steps in _taken(called, node, names):
                yield from handed_on(Holder(called, other, steps), depth - 1)
    for base in getattr(code, "__bases__", ()):
        if depth and holder.name in {item.name for item in parameters(base)} and not _is_torch(base):
            yield from handed_on(Holder(base, holder.name, holder.path), depth - 1)


def names_around(code: Any) -> Mapping[str, Any]:
    """The names of the module of a class or function."""
    return vars(sys.modules[code.__module__]) if getattr(code, "__module__", "") in sys.modules else {}


def _is_torch(code: Any) -> bool:
    """Whether this is torch's own code, which reads no configuration."""
    return str(code.__module__).partition(".")[0] == "torch"


def _own_method(code: Any, function: ast.expr) -> Any:
    """The method of a class that its code calls on `self`."""
    if inspect.isclass(code) and _is_own(function):
        method = inspect.getattr_static(code, function.attr, None)
        return method if inspect.isfunction(method) else None
    return None


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _taken(called: Any, call: ast.Call, names: Mapping[str, Steps]) -> Iterator[tuple[str, Steps]]:
    """The parameters of what is called that a call hands the parameter or parts of it to, and which part."""
    for name, value in arguments(called, call):
        if (steps := _steps(value, names)) is not None:
            yield name, steps


def arguments(called: Any, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The arguments of a call by the parameters of what is called, up to one that is spread."""
    order = [item.name for item in parameters(called)]
    order = order[1:] if inspect.isfunction(called) and order[:1] == ["self"] else order
    starred = next((at for at, argument in enumerate(call.args) if isinstance(argument, ast.Starred)), len(call.args))
    yield from zip(order, call.args[:starred], strict=False)
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)


def called_part(function: ast.expr, instance: Any, parts: Mapping[str, Any]) -> Any:
    """The part of an instance that is called by its attribute, or by the name of a loop over parts (`parts`: name → the first of them); `None` for anything
    else."""
    match function:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return getattr(instance, name, None)
        case ast.Name(id=name):
            return parts.get(name)
    return None
