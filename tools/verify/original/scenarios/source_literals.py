"""The numbers that stand in the original's code, as inputs: whether `x <= 0.1` is right shows at 0.1 alone. Used on the original's side."""

from __future__ import annotations

import dis
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.input_sampling import Array, Leaf, is_signal

MOST = 32
IGNORED = -100
"""The label that torch's losses leave out unless they are told another: code that does not speak of it need not have it in mind."""
PADDING = 0
"""What stands for padding most often, and is among no numbers of the code: recorded inputs may have none."""
STOPS = frozenset({"detach", "detach_", "no_grad", "inference_mode", "set_grad_enabled", "requires_grad", "requires_grad_"})
"""Names in code that decides what gradients there are."""


def numbers(model: torch.nn.Module) -> list[float]:
    """Numbers in what the classes of these modules do, in their attributes, and in the functions beside them; each once, small ones only."""
    found = _magnitudes(chain(*map(_held, model.modules()), _written(model)))
    found.pop(0.0, None)
    return list(found)[:MOST]


def speaks_of_ignored(model: torch.nn.Module) -> bool:
    """Whether the code of these modules' own classes, or beside them, has the number that torch's losses ignore."""
    return any(type(value) is int and value == IGNORED for value in _written(model))


def uses(model: torch.nn.Module, names: Container[str]) -> bool:
    """Whether the code of these modules' own classes, or beside them, has one of these names."""
    codes = (each for function in _own_functions(model) for each in _codes(function.__code__))
    return any(name in names for code in codes for name in code.co_names)


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
    """Numbers that stand in the code of these modules' own classes, or beside them, and in the attributes of such modules; small ones only."""
    own = (part for part in model.modules() if not type(part).__module__.startswith("torch."))
    return list(_magnitudes(chain(*map(_held, own), _written(model))))


def divisors(model: torch.nn.Module) -> list[int]:
    """Whole numbers above one among the modules' attributes, the outermost module's first, each once."""
    attributes = chain(*map(_held, model.modules()))
    return list(dict.fromkeys(value for value in attributes if type(value) is int and value > 1))[:MOST]


def _held(part: torch.nn.Module) -> Iterator[Any]:
    """What a module's attributes hold."""
    return (value for name, value in vars(part).items() if not name.startswith("_"))


def _magnitudes(values: Iterable[Any]) -> dict[float, None]:
    """The absolute values of the numbers among these, each once, small ones only."""
    numbers = (abs(float(value)) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool))
    return dict.fromkeys(number for number in numbers if number <= tolerances.LARGE)


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
    for name in dict.fromkeys(cls.__module__ for cls in own if cls is not object):
        yield from _functions(vars(sys.modules[name]), name)


def _functions(names: Any, module: str = "") -> list[FunctionType]:
    found = [value for value in names.values() if isinstance(value, FunctionType)]
    return [function for function in found if not module or function.__module__ == module]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _codes(value)


def at(leaves: Sequence[Leaf], found: Sequence[float]) -> list[Array] | None:
    """The recorded inputs, signals made of these numbers and their negatives; among several signals equal ones meet, and others. None where none is moved."""
    pool = np.array([sign * value for value in found for sign in (1.0, -1.0)])
    if not pool.size or not any(leaf.value.size and is_signal(leaf.value) for leaf in leaves):
        return None
    return [_of(leaf.value, pool, index) for index, leaf in enumerate(leaves)]


def whole(found: Sequence[float], spoken: bool = False) -> list[int]:
    """Zero, and the whole ones among these numbers and their negatives, the least first. `spoken` says whether the code itself has the number that
    torch's losses ignore without being told to: then it comes before all."""
    numbers = {PADDING} | {int(sign * value) for value in found if value == int(value) for sign in (1, -1)}
    numbers -= set() if spoken else {IGNORED}
    return sorted(numbers, key=lambda value: (value != IGNORED, abs(value), value))


def among(value: Array, pool: Sequence[int]) -> Array:
    """Integers of which every third is one of these, so that most stay as they were recorded."""
    changed = value.copy()
    flat = changed.reshape(-1)
    flat[::3] = np.resize(np.array(pool, value.dtype), flat[::3].shape)
    return changed


def _of(value: Array, pool: Array, index: int) -> Array:
    if not value.size or not is_signal(value):
        return value
    place = np.arange(value.size)
    return np.asarray(pool[(place + index * (place % 2)) % pool.size].reshape(value.shape), value.dtype)
