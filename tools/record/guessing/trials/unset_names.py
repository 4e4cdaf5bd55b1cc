"""Names and attributes that the code sets under conditions alone: the settings under which it does, where an error says that one is not there."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_call, set_init
from migrate_agent.tools.record.guessing.values import Fields, Value

UNSET = re.compile(
    r"UnboundLocalError: .*variable '(?P<local>\w+)'|NameError: .*(?:variable|name) '(?P<name>\w+)'"
    r"|AttributeError: '(?P<owner>\w+)' object has no attribute '(?P<attribute>\w+)'"
)
NOT_NONE = "not None"
"""In place of a text: any value but None."""
MOST = 6
"""Places that set one name."""
MOST_VALUES = 3
Wanted = Mapping[str, str]
"""Name → the text of what it must be."""


def unset_names(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """The attempt with settings under which the name that an error misses is set: those of all places that set it at once, then of each alone."""
    match = UNSET.match(outcome.error)
    trees = _trees(options.trial.function or options.trial.cls) if match else []
    if match is None or (match["owner"] and not any(_defines(tree, match["owner"]) for tree in trees)):
        return
    name = match["attribute"] or match["local"] or match["name"]
    conditions = [tests for tree in trees for tests in _places(tree, name, of_self=bool(match["attribute"]))]
    rows = list(islice((values for tests in conditions for values in _fulfilled(tests) if values), MOST))
    together: dict[str, str] = {}
    for values in rows:
        together = {**values, **together}
    sources = _sources(trees)
    for values in [together, *rows] if together else ():
        yield from _with_settings(attempt, values, sources, options)


def _trees(code: Any) -> list[ast.AST]:
    """The text of the file that a class or function is of."""
    module = sys.modules.get(code.__module__)
    return list(nodes_of(module)[:1]) if module is not None and not code.__module__.startswith("torch.") else []


def _defines(tree: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.ClassDef) and node.name == name for node in ast.walk(tree))


def _places(
    node: ast.AST, name: str, *, of_self: bool, tests: tuple[tuple[ast.expr, bool], ...] = ()
) -> Iterator[tuple[tuple[ast.expr, bool], ...]]:
    """The conditions around each statement that sets a name, or an attribute of `self`: each a test, and what it must come to."""
    if isinstance(node, ast.FunctionDef):
        tests = ()
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            for branch, truth in ((body, True), (orelse, False)):
                for statement in branch:
                    yield from _places(statement, name, of_self=of_self, tests=(*tests, (test, truth)))
            return
        case ast.Name(id=target, ctx=ast.Store()) if not of_self and target == name:
            yield tests
        case ast.Attribute(value=ast.Name(id="self"), attr=target, ctx=ast.Store()) if of_self and target == name:
            yield tests
    for child in ast.iter_child_nodes(node):
        yield from _places(child, name, of_self=of_self, tests=tests)


def _fulfilled(tests: Sequence[tuple[ast.expr, bool]]) -> Iterator[dict[str, str]]:
    """What names must be for all of these tests to come to what they must."""
    ways: list[dict[str, str]] = [{}]
    for test, truth in tests:
        ways = [{**before, **more} for before in ways for more in _ways(test, truth)][:MOST]
    yield from ways


def _ways(test: ast.expr, truth: bool) -> list[dict[str, str]]:
    """What names may be for a test to come to a truth value; one empty way where it is not known."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _ways(inner, not truth)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == truth:
            return list(_fulfilled([(value, truth) for value in values]))
        case ast.BoolOp(values=values):
            return [way for value in values for way in _ways(value, truth)]
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            return [{_last(left): "None" if isinstance(op, ast.Is) == truth else NOT_NONE}]
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant() as constant]):
            return [{_last(left): ast.unparse(constant)}] if isinstance(op, ast.Eq) == truth else [{}]
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[ast.Tuple(elts=parts) | ast.List(elts=parts)]):
            constants = [part for part in parts if isinstance(part, ast.Constant)]
            return [{_last(left): ast.unparse(part)} for part in constants] if constants and isinstance(op, ast.In) == truth else [{}]
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return [{_last(test): str(truth)}]
    return [{}]


def _last(node: ast.expr) -> str:
    """The last name of what is read: `deep` of `deep`, `self.deep`, `args.deep`, `args["deep"]` and `args.get("deep")`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return name
        case ast.Call(func=ast.Attribute(value=inner, attr="lower" | "upper"), args=[]):
            return _last(inner)
    return ""


def _sources(trees: Sequence[ast.AST]) -> dict[str, set[str]]:
    """Name → the names of what is assigned to it as it is: `deep` of `self.is_deep = args.deep`."""
    sources: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
                pairs = list(zip(targets, values, strict=True))
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case _:
                continue
        for target, value in pairs:
            if _last(target) and _last(value):
                sources.setdefault(_last(target), set()).add(_last(value))
    return sources


def _with_settings(attempt: Attempt, wanted: Wanted, sources: Mapping[str, set[str]], options: Options) -> Iterator[Attempt]:
    """The attempt with these values of the settings that the names are, or are assigned from."""
    attempts = [attempt]
    for name, text in wanted.items():
        for setting in (name, *sorted(sources.get(name, ()))):
            changed = [other for before in attempts for other in islice(_with_setting(before, setting, text, options), MOST_VALUES)]
            if changed:
                attempts = changed[:MOST]
                break
    yield from (changed for changed in attempts if changed != attempt)


def _with_setting(attempt: Attempt, name: str, text: str, options: Options) -> Iterator[Attempt]:
    if name in options.call:
        values = (text,) if text != NOT_NONE else tuple(value for value in options.call_values(name, attempt) if value != "None")
        yield from (set_call(attempt, name, value) for value in values if attempt.call is not None)
    elif name in options.init:
        values = (text,) if text != NOT_NONE else tuple(value for value in options.init_values(name) if value != "None")
        yield from (set_init(attempt, name, value) for value in values)
    else:
        texts = (text,) if text != NOT_NONE else options.texts_of(name)
        for parameter, value in attempt.init:
            if isinstance(value, Fields):
                changed = ((other, _with_field(value, name, other)) for other in texts)
                yield from (set_init(attempt, parameter, fields) for _, fields in changed if fields != value)


def _with_field(value: Fields, name: str, text: str) -> Fields:
    """The object, or an object in it, with another value of a field that it has."""

    def change(field: str, inner: Value) -> Value:
        return text if field == name else _with_field(inner, name, text) if isinstance(inner, Fields) else inner

    return replace(value, items=tuple((field, change(field, inner)) for field, inner in value.items))
