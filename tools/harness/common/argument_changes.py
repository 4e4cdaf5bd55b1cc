"""Other configurations of a unit: changes plain arguments of its constructor and its call, to expose arguments that a rewrite ignores.

An argument has its parameter's name; one of the call has `CALL` before it. An item of a dictionary, a named tuple or a
small settings object (such as a dataclass) is named `argument.item`, with settings in it `argument.item.item`, and the number of items of a list
`argument.length`. Standard library only.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from migrate_agent.tools.harness.common import budgets

PLAIN = (bool, int, float)
CALL = "call:"
LENGTH = "length"
ABSENT = (8, 0.5)
"""Values for an argument of the constructor that is None: a size, a share."""
DEPTH = 3
"""So many levels of settings in settings are looked into."""
ENDS = (1.0, 0.0)
"""Where the range of a rate ends."""
FINITE = 100.0
"""The magnitude of a value for an argument that is infinite, such as what masked scores are filled with."""
Changes = Mapping[str, Any]
"""Name of an argument → its other value."""


def changed(cls: Callable[..., Any], changes: Changes) -> Callable[..., Any]:
    """A constructor of the class that replaces its arguments by the changed values."""
    own = {name: value for name, value in changes.items() if not name.startswith(CALL)}
    if not own:
        return cls

    @cache  # hundreds of modules are made to compare initial values
    def signature() -> inspect.Signature:
        return inspect.signature(_constructor(cls, own))

    def construct(*args: Any, **kwargs: Any) -> Any:
        bound = _bound(signature(), args, kwargs)
        for name, value in own.items():
            _put(bound, name, value)
        return cls(*bound.args[1:], **bound.kwargs)

    return construct


def _constructor(cls: Any, names: Iterable[str]) -> Callable[..., Any]:
    """The class's constructor; where that passes on `*args, **kwargs`, the first inherited one that has these parameters."""
    heads = {name.partition(".")[0] for name in names}
    for base in getattr(cls, "__mro__", ()):
        parameters = inspect.signature(vars(base)["__init__"]).parameters if "__init__" in vars(base) else {}
        if heads <= set(parameters):
            return vars(base)["__init__"]  # type: ignore[no-any-return]
        if [parameter for parameter in list(parameters.values())[1:] if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]:
            break
    return cls.__init__  # type: ignore[no-any-return]


def never_given(method: Callable[..., Any], calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]]) -> list[str]:
    """The names of arguments that are None in each of these calls: no example shows what the method does with other values."""
    bound = [bind(method, *call).arguments for call in calls]
    return (
        [name for name, value in list(bound[0].items())[1:] if value is None and all(arguments.get(name) is None for arguments in bound)]
        if bound
        else []
    )


def called(method: Callable[..., Any], changes: Changes, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """The call's positional and keyword arguments, with the changed values in place of its own."""
    own = {name.removeprefix(CALL): value for name, value in changes.items() if name.startswith(CALL)}
    if not own:
        return tuple(args), dict(kwargs)
    bound = bind(method, args, kwargs)
    for name, value in own.items():
        _put(bound, name, value)
    return bound.args[1:], bound.kwargs


def bind(method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    """A method's arguments by name, defaults among them; the first is the instance. Raises `TypeError` where they do not fit."""
    return _bound(inspect.signature(method), args, kwargs)


def _bound(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
    # `None` stands for `self`: signatures of unbound methods have it as their first parameter.
    bound = signature.bind(None, *args, **kwargs)
    bound.apply_defaults()
    return bound


def proposals(bound: inspect.BoundArguments, *, absent: bool = False) -> dict[str, tuple[Any, ...]]:
    """Name of each argument → other values for it, the ones to try first in front.

    `absent` includes arguments that are None.
    """
    options: dict[str, tuple[Any, ...]] = {}
    repeats: dict[str, int] = {}
    for name, value in _named(bound):
        options[f"{name}.{LENGTH}"] = lengths(value)
        values = ABSENT if absent and value is None else others(value)
        rank = repeats[repr(value)] = repeats.get(repr(value), -1) + 1
        # Equal arguments get different values: swapping two that are equal in every scenario would
        # not show.
        shift = rank % max(len(values), 1)
        options[name] = values[shift:] + values[:shift]
    return {name: values for name, values in options.items() if values}


def absent(bound: inspect.BoundArguments) -> dict[str, None]:
    """The arguments that are None, by name."""
    return {name: None for name, value in _named(bound) if value is None}


def strings(bound: inspect.BoundArguments) -> dict[str, str]:
    """The strings among the arguments, by name."""
    return {name: value for name, value in _named(bound) if type(value) is str and value}


def ints(bound: inspect.BoundArguments) -> dict[str, int]:
    """The ints among the arguments, by name."""
    return {name: value for name, value in _named(bound) if type(value) is int}


def floats(bound: inspect.BoundArguments) -> dict[str, float]:
    """The finite floats among the arguments, by name."""
    return {name: value for name, value in _named(bound) if type(value) is float and math.isfinite(value)}


def lengths(value: Any) -> tuple[int, ...]:
    """Other lengths for a list or tuple of numbers, strings or arrays; () for any other value."""
    if type(value) not in (list, tuple) or not value or not all(isinstance(item, (str, *PLAIN)) or _is_array(item) for item in value):
        return ()
    return (len(value) + 1, len(value) - 1) if len(value) > 1 else (len(value) + 1,)


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def others(value: Any) -> tuple[Any, ...]:
    """Other values of the same type: the other bool, larger and smaller ints, shares of a float, and sequences of these."""
    # Before `int`, of which `bool` is a subclass.
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        if value > 0:
            return tuple(dict.fromkeys((value + 1, 2 * value, *([value // 2] if value > 1 else []), value + 2)))
        return (value - 1,) if value < 0 else (1, 2)
    if isinstance(value, float):
        # Smaller ones: many floats are probabilities or slopes, and more than 1 is refused.
        if math.isinf(value):
            return (math.copysign(FINITE, value),)
        return tuple(share * (value or 0.1) for share in (0.5, 0.25, 0.75)) if math.isfinite(value) else ()
    if type(value) in (tuple, list) and value and all(type(item) is type(value[0]) and isinstance(item, (int, float)) for item in value):
        options = [others(item) for item in value]
        # Equal items get different values first: swapping them would not show.
        apart = [[row[index % len(row)] for index, row in enumerate(options)]] if all(options) and len({*value}) < len(value) else []
        return (*apart, *(list(row) for row in zip(*options, strict=False)))
    return ()


def at_an_end(changes: Changes) -> bool:
    """Whether a float among these is at an end of the range of rates."""
    return any(type(value) is float and value in ENDS for value in changes.values())


def words(changes: Changes) -> str:
    """`constructed with heads=4, bias=False; called with causal=False`."""
    parts = {"constructed": {}, "called": {}}  # type: dict[str, dict[str, Any]]
    for name, value in changes.items():
        parts["called" if name.startswith(CALL) else "constructed"][name.removeprefix(CALL)] = value
    return "; ".join(
        f"{verb} with {', '.join(f'{name}={value!r}' for name, value in part.items())}" for verb, part in parts.items() if part
    )


def _named(bound: inspect.BoundArguments) -> Iterator[tuple[str, Any]]:
    kinds = {name: item.kind for name, item in bound.signature.parameters.items()}
    for name, value in list(bound.arguments.items())[1:]:
        if kinds[name] is not inspect.Parameter.VAR_POSITIONAL or all(map(_is_array, value)):
            yield from _items(name, value, DEPTH)


def _items(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """The value, or the items of a settings object by dotted names, those of settings in it too, as far as this depth."""
    settings = _settings(value) if depth else None
    if settings is None:
        yield name, value
    elif len(settings) <= budgets.MAX_SETTINGS:
        for key, item in settings.items():
            yield from _items(f"{name}.{key}", item, depth - 1)


def _settings(value: Any) -> Mapping[str, Any] | None:
    """The items of a dictionary, a named tuple or a settings object; None for any other value."""
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if isinstance(key, str)}
    if _is_named_tuple(value):
        return dict(zip(value._fields, value, strict=True))
    if _is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value) if item.init}
    if isinstance(value, (type, str, *PLAIN)) or callable(value) or not hasattr(value, "__dict__"):
        return None
    return {key: item for key, item in vars(value).items() if _is_setting(item) and not key.startswith("_")}


def _is_setting(item: Any) -> bool:
    """Whether an attribute is a setting or holds some, and not a part of a machinery."""
    nested = isinstance(item, (dict, SimpleNamespace)) or _is_named_tuple(item) or _is_dataclass(item)
    return nested or type(item) in (str, list, tuple, *PLAIN)


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _put(bound: inspect.BoundArguments, name: str, value: Any) -> None:
    """Set an argument or an item of it. Raises `KeyError`, `AttributeError` or `TypeError` where there is none of this name."""
    name, _, path = name.partition(".")
    bound.arguments[name] = _with(bound.arguments[name], path, value)


def _with(old: Any, path: str, value: Any) -> Any:
    """A copy of settings with another value under a dotted path: they are shared between the modules of one example."""
    if not path:
        return _alike(value, old)
    if path == LENGTH and type(old) in (list, tuple):
        return type(old)(old[index % len(old)] for index in range(value)) if value > len(old) else old[len(old) - value :]
    key, _, rest = path.partition(".")
    if isinstance(old, dict):
        key, rest = (path, "") if path in old else (key, rest)
        clone = copy.copy(old)
        clone[key] = _with(old[key], rest, value)
        return clone
    item = _with(getattr(old, key), rest, value)
    if _is_named_tuple(old):
        return old._replace(**{key: item})
    if _is_dataclass(old):
        return dataclasses.replace(old, **{key: item})
    clone = copy.copy(old)
    setattr(clone, key, item)
    return clone


def _alike(value: Any, old: Any) -> Any:
    """`value` as a tuple where the old value is one: JSON has lists only."""
    return tuple(value) if isinstance(old, tuple) else value
