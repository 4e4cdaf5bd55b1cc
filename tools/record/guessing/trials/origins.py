"""Which arguments of a call the tensors of an operation were computed from: followed while a trial runs, so that the error of an operation is known
to be the fault of one argument and not of another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

MOST_LEAVES = 64
"""Tensors that are looked at in one nested argument."""
_ORIGINS = "_migrate_agent_origins"
MANY_NORMALISED = 4
"""Numbers of a channel whose variance is rarely close to zero beside them. Of two it is wherever they are close to each other: rounding then decides
the result, and a network with hundreds of channels has some of these."""
AXES_APART = {"batch_norm": (1,), "instance_norm": (0, 1)}
"""Operations that compute a mean and a variance for each place of these axes."""
STATISTICS = {"batch_norm": "training", "instance_norm": "use_input_stats"}
"""The parameter, the sixth, that says whether they do, and do not take those that they have kept."""
LOOK = "__get__"
"""The operation that reads a shape or another attribute of a tensor."""


class Operand(NamedTuple):
    """A tensor that the failing operation was given: its shape, and the arguments of the call that it came from; of one in a list, a tuple, a
    dictionary or an object with its place (`pair.1`)."""

    shape: tuple[int, ...]
    origins: tuple[str, ...]


class Operation(NamedTuple):
    """The last operation of a trial: its name in torch, and its tensors in order. Those that came from no argument are parameters and constants."""

    name: str = ""
    operands: tuple[Operand, ...] = ()
    equation: str = ""
    """Of an `einsum`."""

    @property
    def origins(self) -> tuple[str, ...]:
        """The arguments that its tensors came from, in the order of the operands."""
        return tuple(dict.fromkeys(argument_of(path) for operand in self.operands for path in operand.origins))


class Origins:
    """Follows tensors through the operations of a call."""

    def __init__(self) -> None:
        self._last: tuple[Callable[..., Any], list[Any]] | None = None
        self._equation = ""
        self._raised = False
        self.operations = 0
        """How many ran since the call began."""
        self.used = False
        """Whether one of them was given a tensor of an argument."""
        self.fewest_normalised = MANY_NORMALISED
        """The fewest numbers that a mean and a variance of one channel were computed from, up to `MANY_NORMALISED`."""

    @property
    def failed(self) -> Operation:
        """The operation that failed, or the look at a tensor's shape that the code goes on from; nothing where no operation is at fault: code that
        calls a number, arguments that torch cannot read."""
        if self._last is None or not (self._raised or _name(self._last[0]) == LOOK):
            return Operation()
        function, tensors = self._last
        operands = tuple(Operand(tuple(tensor.shape), origins_of(tensor)) for tensor in tensors)
        return Operation(_name(function), operands, self._equation)

    def begin(self, arguments: Mapping[str, Any]) -> None:
        """Note that the tensors in these arguments are theirs. One tensor that stands in several is of all of them."""
        self._last, self._raised, self.operations, self.used = None, False, 0, False
        self.fewest_normalised = MANY_NORMALISED
        for name, value in arguments.items():
            for path, tensor in _at_paths(name, value):
                _mark(tensor, (*origins_of(tensor), path))

    def follow(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run an operation; what it gives, and what it writes into, comes from what it was given."""
        inputs = list(_tensors((*args, *kwargs.values())))
        self.operations += 1
        if self._raised and not inputs:
            return function(*args, **kwargs)  # an error leaves `with torch.no_grad()`, which ends by an operation too
        self._last = (function, inputs)
        self._equation = args[0] if _name(function) == "einsum" and isinstance(args[0], str) else ""
        self._raised = True
        self.fewest_normalised = min(self.fewest_normalised, _normalised(_name(function), args, kwargs))
        result = function(*args, **kwargs)
        self._raised = False
        if origins := tuple(dict.fromkeys(name for tensor in inputs for name in origins_of(tensor))):
            self.used = True
            written = inputs[:1] if result is None else ()
            for tensor in (*_tensors((result,)), *written):
                _mark(tensor, origins)
        return result


def origins_of(tensor: Any) -> tuple[str, ...]:
    """The arguments that a tensor came from."""
    origins: tuple[str, ...] = getattr(tensor, "__dict__", {}).get(_ORIGINS, ())
    return origins


def argument_of(path: str) -> str:
    """The argument that an origin lies in."""
    return path.partition(".")[0]


def _at_paths(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors in a value, each with its place."""
    import torch

    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value[:MOST_LEAVES]):
            yield from _at_paths(f"{path}.{at}", item)
    elif isinstance(value, dict):
        for key, item in list(value.items())[:MOST_LEAVES]:
            yield from _at_paths(f"{path}.{key}", item)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module)):
        for key, item in list(vars(value).items())[:MOST_LEAVES]:
            yield from _at_paths(f"{path}.{key}", item) if isinstance(item, (torch.Tensor, list, tuple, dict, SimpleNamespace)) else ()


def _mark(tensor: Any, origins: Iterable[str]) -> None:
    import torch

    if isinstance(tensor, torch.nn.Parameter):
        return  # it belongs to the module, and outlives the call
    vars(tensor)[_ORIGINS] = tuple(dict.fromkeys(origins))


def _normalised(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """How many numbers each mean and variance of an operation is computed from; `MANY_NORMALISED` where it computes none."""
    import torch

    operand = args[0] if args and isinstance(args[0], torch.Tensor) and args[0].ndim > 1 and args[0].numel() else None
    if operand is None or name not in AXES_APART or not kwargs.get(STATISTICS[name], args[5] if len(args) > 5 else name == "instance_norm"):
        return MANY_NORMALISED
    return int(operand.numel() // math.prod(operand.shape[axis] for axis in AXES_APART[name]))


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "")


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors in values, those in lists, tuples and dictionaries too."""
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value[:MOST_LEAVES])
        elif isinstance(value, dict):
            yield from _tensors(list(value.values())[:MOST_LEAVES])
