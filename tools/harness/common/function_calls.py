"""A function as a module that calls it: so all that is asked of a module's call is asked of the function. Standard library only.

Arguments that a call cannot carry over to the other side (modules, functions, classes, settings objects) stand in the example's `init`, by
name. The module holds them, and its call takes the rest.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

RNGS = "rngs"
SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)


def held_names(init: str) -> tuple[str, ...]:
    """The names of the arguments that an example's `init` gives. Raises `SyntaxError` where it is no argument list."""
    call = ast.parse(f"f({init}\n)", mode="eval").body
    return tuple(keyword.arg for keyword in getattr(call, "keywords", ()) if keyword.arg and keyword.arg != RNGS)


def own_parameters(function: Callable[..., Any], port: bool = False) -> list[inspect.Parameter]:
    """The parameters of a function; of a port without the `rngs` that it gains."""
    parameters = list(inspect.signature(function).parameters.values())
    return [item for item in parameters if not (port and item.name == RNGS and item.kind is item.KEYWORD_ONLY)]


def method_signature(parameters: Sequence[inspect.Parameter], held: Collection[str]) -> inspect.Signature:
    """The signature of the module's call: `self`, and the parameters that the module does not hold."""
    # A parameter of the name `self` would be there twice.
    rest = [item for item in parameters if item.name not in held and item.name != SELF.name]
    positional = any(item.kind is item.POSITIONAL_ONLY for item in rest)
    return inspect.Signature([SELF.replace(kind=inspect.Parameter.POSITIONAL_ONLY) if positional else SELF, *rest])


def whole_call(
    parameters: Sequence[inspect.Parameter], held: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The function's arguments: those of the module's call, with the held ones in their places. Raises `TypeError` where they do not fit."""
    if not held:
        return tuple(args), dict(kwargs)
    signature = inspect.Signature(list(parameters))
    rest = signature.replace(parameters=[item for item in parameters if item.name not in held])
    values = {**rest.bind(*args, **kwargs).arguments, **held}
    bound = inspect.BoundArguments(signature, {item.name: values[item.name] for item in parameters if item.name in values})
    return bound.args, bound.kwargs
