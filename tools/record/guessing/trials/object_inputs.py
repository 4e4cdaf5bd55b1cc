"""Arguments of a call that are plain objects or dictionaries, or lists of such: what they hold is mended as other arguments are, and what one lacks is
added."""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from migrate_agent.tools.record.guessing.objects.object_reads import names_of_tensors
from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.rows import call_values
from migrate_agent.tools.record.guessing.trials.origins import Operand
from migrate_agent.tools.record.guessing.trials.other_kinds import TABLES, WORDS
from migrate_agent.tools.record.guessing.trials.trial import Arguments, Attempt, Outcome, set_call
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, tensors
from migrate_agent.tools.record.guessing.values import Sequence as Items

LACKS = re.compile(r"'(?P<owner>[\w.]+)' object has no attribute '(?P<missing>\w+)'")
KEY = re.compile(r"^KeyError: '(\w+)'$")
OF_OBJECTS = "types.SimpleNamespace"
FORMS = ("namespace", "dict")
"""Values that hold others by names."""
NO_OBJECTS = frozenset({"Tensor", "int", "float", "str", "NoneType", "list", "tuple", "numpy.ndarray"})
"""What an argument may be that stands for an object, in the words of an error."""
MOST_VALUES = 2
"""That are tried for an attribute which only an error named."""
Repairs = Callable[[Attempt, Outcome, Options], Iterator[Attempt]]


class Leaf(NamedTuple):
    """What lies in an argument of the call: the argument itself, or what attributes of objects lead to. `name`: of it alone among all of them."""

    name: str
    path: tuple[str, ...]
    value: Value


def objects_asked(attempt: Attempt, outcome: Outcome, options: Options) -> Iterator[Attempt]:
    """The attempt with objects in the place of what has not the attribute that an error names, or with that attribute in the objects that lack it."""
    yield from _keys_asked(attempt, outcome)
    match = LACKS.search(outcome.error)
    # What a tensor has is asked of one, and what is called is a method, which no plain object has.
    if match is None or match["missing"] in WORDS | TABLES | names_of_tensors() or _is_method(outcome.place.statement, match["missing"]):
        return
    call, missing = dict(attempt.call or ()), match["missing"]
    main = next((tensor for value in call.values() for tensor in tensors(value)), Tensor((2, 16, 64)))
    usual = call_values(missing, "", main)[:MOST_VALUES]
    # What the statement names comes first; the object may have been handed on.
    for name in dict.fromkeys([*(name for name in outcome.place.call if name in call), *call]):
        if match["owner"] == OF_OBJECTS:
            for value in usual:
                if (wider := _with_attribute(call[name], missing, value)) != call[name]:
                    yield set_call(attempt, name, wider)
        elif match["owner"] in NO_OBJECTS and not any(len(leaf.path) > 1 for leaf in _leaves((name,), call[name])):
            yield from (set_call(attempt, name, value) for value in options.objects_of(name, main) if _has_attribute(value, missing))
            named_objects = [Fields(((missing, value),), "namespace") for value in usual]
            yield from (set_call(attempt, name, value) for value in named_objects)
            yield from (set_call(attempt, name, Items((value, value))) for value in named_objects[:1])


def _keys_asked(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The attempt with the key that an error names in the dictionaries that lack it."""
    match = KEY.search(outcome.error)
    if match is None:
        return
    for name, value in attempt.call or ():
        main = next(tensors(value), Tensor((2, 16, 64)))
        fewer = replace(main, shape=main.shape[:-1])
        for inner in dict.fromkeys((*call_values(match[1], "", main)[:MOST_VALUES], fewer)):
            if (wider := _with_attribute(value, match[1], inner, "dict")) != value:
                yield set_call(attempt, name, wider)


def within_objects(attempt: Attempt, outcome: Outcome, options: Options, repairs: Repairs, form: str = FORMS[0]) -> Iterator[Attempt]:
    """What `repairs` makes of the attempt where what its objects, or its dictionaries (`form`), hold are arguments of their own; nothing where it has
    none."""
    leaves = list(named_leaves(attempt.call or ()))
    if not any(_has_form(value, form) for _, value in attempt.call or ()):
        return
    inner = replace(attempt, call=tuple((leaf.name, leaf.value) for leaf in leaves))
    for mended in repairs(inner, _of_leaves(outcome, leaves), _with_parameters(options, leaves)):
        values = dict(mended.call or ())
        call = [(name, _rebuilt((name,), value, leaves, values)) for name, value in attempt.call or ()]
        known = {leaf.name for leaf in leaves}
        call += [(name, value) for name, value in values.items() if name not in known and name in options.call]
        yield replace(mended, call=tuple(call) if mended.call is not None else None)


def _has_form(value: Value, form: str) -> bool:
    """Whether a value is of this form, and has something in it, or is a list of such."""
    inner = value if isinstance(value, Fields) else _repeated(value)
    return inner is not None and inner.form == form and bool(inner.items)


def named_leaves(call: Arguments) -> Iterator[Leaf]:
    """All that lies in the arguments of a call, by the last name that leads there where it is the only one."""
    rows = [(path, value) for name, argument in call for path, value in _paths((name,), argument)]
    counts = Counter(path[-1] for path, _ in rows)
    for path, value in rows:
        yield Leaf(path[-1] if len(path) == 1 or counts[path[-1]] == 1 else "_".join(path), path, value)


def _leaves(path: tuple[str, ...], value: Value) -> list[Leaf]:
    return [Leaf("", one, inner) for one, inner in _paths(path, value)]


def _paths(path: tuple[str, ...], value: Value) -> Iterator[tuple[tuple[str, ...], Value]]:
    """What the attributes of objects hold, by their names; of a list of equal objects each once."""
    if isinstance(value, Fields) and value.form in FORMS and value.items:
        for name, inner in value.items:
            yield from _paths((*path, name), inner)
    elif (item := _repeated(value)) is not None:
        yield from _paths(path, item)
    else:
        yield path, value


def _repeated(value: Value) -> Fields | None:
    """The object that a list holds several times."""
    item = value.items[0] if isinstance(value, Items) and value.items and len(set(value.items)) == 1 else None
    return item if isinstance(item, Fields) and item.form in FORMS else None


def _rebuilt(path: tuple[str, ...], value: Value, leaves: list[Leaf], values: Mapping[str, Value]) -> Value:
    """The argument with these values of its leaves."""
    if isinstance(value, Fields) and value.form in FORMS and value.items:
        return replace(value, items=tuple((name, _rebuilt((*path, name), inner, leaves, values)) for name, inner in value.items))
    if isinstance(value, Items) and (item := _repeated(value)) is not None:
        return replace(value, items=(_rebuilt(path, item, leaves, values),) * len(value.items))
    name = next(leaf.name for leaf in leaves if leaf.path == path)
    return values.get(name, value)


def _of_leaves(outcome: Outcome, leaves: list[Leaf]) -> Outcome:
    """What came of a trial, with the leaves in the place of the arguments that they lie in."""
    operands = tuple(
        Operand(operand.shape, tuple(_origin(path, leaves) for path in operand.origins)) for operand in outcome.operation.operands
    )
    operation = outcome.operation._replace(operands=operands)
    read = [
        leaf.name
        for leaf in leaves
        if len(leaf.path) > 1
        and re.search(rf"\.{re.escape(leaf.path[-1])}\b|\[['\"]{re.escape(leaf.path[-1])}['\"]\]", outcome.place.statement)
    ]
    within = [leaf.name for name in outcome.place.call for leaf in leaves if name == leaf.path[0] or name == leaf.name]
    names = tuple(dict.fromkeys([*operation.origins, *read, *within]))
    return outcome._replace(operation=operation, place=outcome.place._replace(call=names))


def _origin(path: str, leaves: list[Leaf]) -> str:
    """The origin of a tensor by the leaf that it lies in: `graphs.1.x` is of the leaf `x`."""
    steps = path.split(".")
    for leaf in leaves:
        rest = list(steps)
        if all(_step(rest, name, at) for at, name in enumerate(leaf.path)):
            return ".".join([leaf.name, *rest])
    return path


def _step(rest: list[str], name: str, at: int) -> bool:
    """Take a name off the front of a path, and the number of an item before it."""
    if at and len(rest) > 1 and rest[0].isdigit():
        del rest[0]
    return bool(rest) and rest.pop(0) == name


def _with_parameters(options: Options, leaves: list[Leaf]) -> Options:
    """The options of a call that has a parameter for each leaf."""
    inner = copy.copy(options)
    keyword = inspect.Parameter.KEYWORD_ONLY
    inner.call = {leaf.name: options.call.get(leaf.name, inspect.Parameter(leaf.name, keyword)) for leaf in leaves}
    inner.call |= {name: item for name, item in options.call.items() if name not in {leaf.path[0] for leaf in leaves}}
    return inner


def _with_attribute(value: Value, name: str, inner: Value, form: str = "namespace") -> Value:
    """The objects, or dictionaries, of an argument with one attribute, or key, more."""
    if isinstance(value, Items):
        return replace(value, items=tuple(_with_attribute(item, name, inner, form) for item in value.items))
    if not isinstance(value, Fields) or value.form != form or name in dict(value.items):
        return value
    return replace(value, items=(*value.items, (name, inner)))


def _has_attribute(value: Value, name: str) -> bool:
    """Whether an object, one in it or one of a list has an attribute."""
    items = value.items if isinstance(value, Fields) else tuple(("", item) for item in value.items) if isinstance(value, Items) else ()
    return any(key == name or _has_attribute(inner, name) for key, inner in items)


def _is_method(statement: str, name: str) -> bool:
    """Whether a statement calls an attribute."""
    try:
        nodes = list(ast.walk(ast.parse(statement)))
    except SyntaxError:  # the head of a compound statement may be none of its own
        return False
    return any(isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name for node in nodes)


__all__ = ["named_leaves", "objects_asked", "within_objects"]
