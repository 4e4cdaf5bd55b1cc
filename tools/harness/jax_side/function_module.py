"""A function of the candidate as an NNX module."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from flax import nnx

from migrate_agent.tools.harness.common.function_calls import RNGS, held_names, method_signature, own_parameters, whole_call


def function_module(function: Callable[..., Any], init: str) -> type[nnx.Module]:
    """A module class whose call is the function's. Its constructor takes the arguments that `init` gives, and `rngs`, which goes to the
    function where that takes it. Raises `TypeError` for what is no function."""
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"{getattr(function, '__name__', function)} is no function")
    held = held_names(init)
    parameters = own_parameters(function, port=True)
    draws = RNGS in inspect.signature(function).parameters and all(item.name != RNGS for item in parameters)

    class FunctionModule(nnx.Module):
        def __init__(self, *, rngs: nnx.Rngs, **values: Any) -> None:
            for name, value in values.items():
                setattr(self, name, value)
            if draws:
                self.rngs = rngs

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            args, kwargs = whole_call(parameters, {name: getattr(self, name) for name in held}, args, kwargs)
            return function(*args, **kwargs, **({RNGS: self.rngs} if draws else {}))

    unit: Any = FunctionModule
    unit.__call__.__signature__ = method_signature(parameters, held)
    unit.described = parameters
    unit.__module__ = function.__module__
    unit.__name__ = unit.__qualname__ = getattr(function, "__name__", "function")
    return FunctionModule
