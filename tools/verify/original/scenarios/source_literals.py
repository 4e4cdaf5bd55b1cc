"""Uses the numbers in the original's code as inputs: whether `x <= 0.1` is right shows only at 0.1. Used on the original's side."""

from __future__ import annotations

import dis
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch

from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.harness.common.input_sampling import Array, Leaf, is_signal

MOST = 32
IGNORED = -100
"""The default `ignore_index` of torch's losses: code that does not contain it need not support it."""
PADDING = 0
"""The usual id of padding, which seldom is a number in the code: recorded inputs may have none."""
STOPS = frozenset({"detach", "detach_", "no_grad", "inference_mode", "set_grad_enabled", "requires_grad", "requires_grad_"})
"""Names in code that stops or starts gradients."""


def numbers(model: torch.nn.Module) -> list[float]:
    """The magnitudes of numbers in the modules' code and attributes and in functions beside them, each once, up to `LARGE`."""
    magnitudes = _magnitudes(chain(*map(_held, model.modules()), _written(model)))
    magnitudes.pop(0.0, None)
    return list(magnitudes)[:MOST]


def speaks_of_ignored(model: torch.nn.Module) -> bool:
    """Whether the code of these modules' own classes, or beside them, has the number that torch's losses ignore."""
    return any(type(value) is int and value == IGNORED for value in _written(model))


def uses(model: torch.nn.Module, names: Container[str]) -> bool:
    """Whether the code of these modules' own classes, or beside them, has one of these names."""
    codes = (block for function in _own_functions(model) for block in _codes(function.__code__))
    return any(name in names for code in codes for name in code.co_names)


def defines_gradients(model: torch.nn.Module) -> bool:
    """Whether a file of these modules' own classes has a class with a backward pass of its own."""
    own = {
        base.__module__ for part in model.modules() for base in type(part).__mro__ if not base.__module__.startswith(("torch.", "builtins"))
    }
    values = [value for name in own for value in vars(sys.modules[name]).values()]
    return any(isinstance(value, type) and issubclass(value, torch.autograd.Function) for value in values)


def takes_remainders(model: torch.nn.Module) -> bool:
    """Whether the code of these modules' own classes, or beside them, divides for a remainder."""
    return any(step.argrepr in ("%", "%=") or step.argval == "divmod" for step in _steps(model))


def counts(model: torch.nn.Module) -> bool:
    """Whether the code of these modules' own classes, or beside them, bounds or divides whole numbers, maybe Python's own."""
    named = ("min", "max", "divmod")
    return any(
        step.argrepr in ("%", "%=", "//", "//=") or (step.opname == "LOAD_GLOBAL" and step.argval in named) for step in _steps(model)
    )


def own_numbers(model: torch.nn.Module) -> list[float]:
    """The magnitudes of numbers in the code and attributes of the user's own modules, and in functions beside them, up to `LARGE`."""
    own = (part for part in model.modules() if not type(part).__module__.startswith("torch."))
    return list(_magnitudes(chain(*map(_held, own), _written(model))))


def divisors(model: torch.nn.Module) -> list[int]:
    """Ints above 1 among the modules' attributes, the outermost module's first, each once."""
    attributes = chain(*map(_held, model.modules()))
    return list(dict.fromkeys(value for value in attributes if type(value) is int and value > 1))[:MOST]


def _held(part: torch.nn.Module) -> Iterator[Any]:
    """The values of a module's public attributes."""
    return (value for name, value in vars(part).items() if not name.startswith("_"))


def _magnitudes(values: Iterable[Any]) -> dict[float, None]:
    """The absolute values of the numbers among these, each once, small ones only."""
    numbers = (abs(float(value)) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool))
    return dict.fromkeys(number for number in numbers if number <= budgets.LARGE)


def _steps(model: torch.nn.Module) -> Iterator[dis.Instruction]:
    return (step for function in _own_functions(model) for code in _codes(function.__code__) for step in dis.get_instructions(code))


def _written(model: torch.nn.Module) -> Iterator[Any]:
    for function in _own_functions(model):
        for code in _codes(function.__code__):
            for value in code.co_consts:
                yield from value if isinstance(value, tuple) else (value,)


def _own_functions(model: torch.nn.Module) -> Iterator[FunctionType]:
    own = list(dict.fromkeys(base for part in model.modules() for base in type(part).__mro__ if not base.__module__.startswith("torch.")))
    for cls in own:
        yield from _functions(vars(cls))
    # Helper functions beside the classes hold numbers too, such as a window or a threshold.
    for name in dict.fromkeys(cls.__module__ for cls in own if cls is not object):
        yield from _functions(vars(sys.modules[name]), name)


def _functions(names: Any, module: str = "") -> list[FunctionType]:
    functions = [value for value in names.values() if isinstance(value, FunctionType)]
    return [function for function in functions if not module or function.__module__ == module]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _codes(value)


def at(leaves: Sequence[Leaf], magnitudes: Sequence[float]) -> list[Array] | None:
    """The recorded inputs with every signal made of these numbers and their negatives; None where no input is a signal."""
    pool = np.array([sign * value for value in magnitudes for sign in (1.0, -1.0)])
    if not pool.size or not any(leaf.value.size and is_signal(leaf.value) for leaf in leaves):
        return None
    return [_of(leaf.value, pool, index) for index, leaf in enumerate(leaves)]


def whole(magnitudes: Sequence[float], spoken: bool = False) -> list[int]:
    """Zero, and the integral ones among these numbers and their negatives, smallest magnitude first.

    `spoken`: the code contains `IGNORED`, which comes first then.
    """
    numbers = {PADDING} | {int(sign * value) for value in magnitudes if value == int(value) for sign in (1, -1)}
    numbers -= set() if spoken else {IGNORED}
    return sorted(numbers, key=lambda value: (value != IGNORED, abs(value), value))


def among(value: Array, pool: Sequence[int]) -> Array:
    """The array with every third integer replaced by one of the pool; most stay as recorded."""
    changed = value.copy()
    flat = changed.reshape(-1)
    flat[::3] = np.resize(np.array(pool, value.dtype), flat[::3].shape)
    return changed


def _of(value: Array, pool: Array, index: int) -> Array:
    if not value.size or not is_signal(value):
        return value
    positions = np.arange(value.size)
    # Odd elements are shifted by the input's index: two signals meet in equal numbers at even
    # elements, and in different ones at odd.
    return np.asarray(pool[(positions + index * (positions % 2)) % pool.size].reshape(value.shape), value.dtype)
