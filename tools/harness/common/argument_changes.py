"""Other configurations of a unit: changes plain arguments of its constructor and its call, to expose arguments that a rewrite ignores.

An argument has its parameter's name; one of the call has `CALL` before it. An item of a dictionary or a
small settings object (such as a dataclass) is named `argument.item`, and the number of items of a list
`argument.length`. Standard library only.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from migrate_agent.tools.harness.common import budgets

PLAIN = (bool, int, float)
CALL = "call:"
LENGTH = "length"
ABSENT = (8, 0.5)
"""Values for an argument of the constructor that is None: a size, a share."""
FINITE = 100.0
"""The magnitude of a value for an argument that is infinite, such as what masked scores are filled with."""
Changes = Mapping[str, Any]
"""Name of an argument → its other value."""


def changed(cls: Callable[..., Any], changes: Changes) -> Callable[..., Any]:
    """A constructor of the class that replaces its arguments by the changed values."""
    own = {name: value for name, value in changes.items() if not name.startswith(CALL)}
    if not own:
        return cls

    def construct(*args: Any, **kwargs: Any) -> Any:
        bound = bind(_constructor(cls, own), args, kwargs)
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
    # `None` stands for `self`: signatures of unbound methods have it as their first parameter.
    bound = inspect.signature(method).bind(None, *args, **kwargs)
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


def strings(bound: inspect.BoundArguments) -> dict[str, str]:
    """The strings among the arguments, by name."""
    return {name: value for name, value in _named(bound) if type(value) is str and value}


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
        rows = zip(*(others(item) for item in value), strict=False)
        return tuple(list(row) for row in rows)
    return ()


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
        if kinds[name] is inspect.Parameter.VAR_POSITIONAL and not all(map(_is_array, value)):
            continue
        settings = _settings(value)
        if settings is None:
            yield name, value
        elif len(settings) <= budgets.MAX_SETTINGS:
            yield from ((f"{name}.{key}", item) for key, item in settings.items())


def _settings(value: Any) -> Mapping[str, Any] | None:
    """The items of a dictionary or a settings object; None for any other value."""
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if isinstance(key, str)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value) if item.init}
    if isinstance(value, (type, str, *PLAIN)) or callable(value) or not hasattr(value, "__dict__"):
        return None
    return {key: item for key, item in vars(value).items() if type(item) in (str, *PLAIN) and not key.startswith("_")}


def _put(bound: inspect.BoundArguments, name: str, value: Any) -> None:
    """Set an argument or an item of it. Raises `KeyError`, `AttributeError` or `TypeError` where there is none of this name."""
    name, _, key = name.partition(".")
    old = bound.arguments[name]
    if not key:
        bound.arguments[name] = _alike(value, old)
    elif key == LENGTH and type(old) in (list, tuple):
        bound.arguments[name] = type(old)(old[index % len(old)] for index in range(value)) if value > len(old) else old[len(old) - value :]
    elif isinstance(old, dict):
        bound.arguments[name] = {**old, key: _alike(value, old[key])}
    elif dataclasses.is_dataclass(old) and not isinstance(old, type):
        bound.arguments[name] = dataclasses.replace(old, **{key: _alike(value, getattr(old, key))})
    else:
        # Settings objects are shared between the modules of one example.
        bound.arguments[name] = copy.copy(old)
        setattr(bound.arguments[name], key, _alike(value, getattr(old, key)))


def _alike(value: Any, old: Any) -> Any:
    """`value` as a tuple where the old value is one: JSON has lists only."""
    return tuple(value) if isinstance(old, tuple) else value
