"""A function of the original as a `torch.nn.Module`. Imports torch only inside of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from migrate_agent.tools.harness.common.function_calls import method_signature, own_parameters, whole_call


@cache
def function_module(function: Callable[..., Any], held: tuple[str, ...] = ()) -> type:
    """A module class whose `forward` calls the function. Its constructor takes the `held` arguments by name.

    `described` are the function's parameters, for the comparison of signatures.
    """
    import torch

    parameters = own_parameters(function)

    class FunctionModule(torch.nn.Module):
        def __init__(self, **values: Any) -> None:
            super().__init__()
            for name, value in values.items():
                setattr(self, name, value)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            args, kwargs = whole_call(parameters, {name: getattr(self, name) for name in held}, args, kwargs)
            return function(*args, **kwargs)

    forward: Any = FunctionModule.forward
    forward.__signature__ = method_signature(parameters, held)
    unit: Any = FunctionModule
    unit.function, unit.described = staticmethod(function), parameters
    unit.__module__ = inspect.unwrap(function).__module__
    unit.__name__ = unit.__qualname__ = function.__name__
    unit.__doc__ = function.__doc__
    return FunctionModule
