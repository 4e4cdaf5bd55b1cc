"""Whether a module is causal in an argument that a loop appends to: what follows in it changes nothing of the results before.

Asked of calls in growing loops (`tools.scan.growing_loops`) while the examples run, of a copy of the module in evaluation mode and in float64.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

PROBES = 3
"""How many calls are asked, each of another length."""
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 0.0, "bfloat16": 0.0}
"""How much of the largest number two results may differ by: in float64 far less than one element of a sequence counts."""


@dataclass
class Probe:
    """What is asked of a call: which argument grows, along which axis, and which part of the result is read along which axis."""

    argument: int | str
    axis: int
    part: int | str | None
    read_axis: int
    causal: bool | None = None
    """`None` where nothing was found out: the sequence was never longer than one element, or the call was of no module."""
    asked: frozenset[int] = frozenset()
    """The lengths that were asked."""

    def watch(self, callee: Any, quiet: Callable[[], AbstractContextManager[object]]) -> Any:
        """The callee, with a question after its call. Raises what the callee raises, and nothing else."""
        if self.causal is False or len(self.asked) >= PROBES:
            return callee

        def call(*args: Any, **kwargs: Any) -> Any:
            with quiet():
                question = self._question(callee, args, kwargs)
            result = callee(*args, **kwargs)
            if question is not None:
                with quiet():
                    self._ask(question)
            return result

        return call

    def _question(
        self, callee: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, str, tuple[Any, ...], dict[str, Any]] | None:
        """A copy of the module, the method that is called, and the arguments before the call can change them."""
        import torch

        owner = callee if isinstance(callee, torch.nn.Module) else getattr(callee, "__self__", None)
        method = "__call__" if owner is callee else getattr(callee, "__name__", "")
        try:
            sequence = self._sequence(args, kwargs)
            length = sequence.shape[self.axis]
            if not isinstance(owner, torch.nn.Module) or length < 2 or length in self.asked:
                return None
            self.asked |= {length}
            return copy.deepcopy(owner), method, *copy.deepcopy((args, kwargs))
        except Exception:  # what cannot be copied is not known to be causal
            return None

    def _sequence(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return args[self.argument] if isinstance(self.argument, int) else kwargs[self.argument]

    def _ask(self, question: tuple[Any, str, tuple[Any, ...], dict[str, Any]]) -> None:
        import torch

        module, method, args, kwargs = question
        holds: bool | None = None
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            for dtype in (torch.float64, torch.float32):
                try:
                    holds = self._holds(module.to(dtype).eval(), method, _cast(args, dtype), _cast(kwargs, dtype))
                    break
                except Exception:  # a module may compute in one dtype alone
                    continue
        self.causal = bool(holds) and self.causal is not False

    def _holds(self, module: Any, method: str, args: Any, kwargs: Any) -> bool:
        import torch

        if any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules()):
            return False  # in training mode each element would count
        sequence = self._sequence(args, kwargs)
        length = sequence.shape[self.axis]
        results = [self._result(module, method, args, kwargs, other) for other in (sequence, *_others(sequence, self.axis))]
        if None in results or any(result.shape[self.read_axis] != length for result in results):
            return False
        for length_kept in {1, length // 2, length - 1}:
            first = results[0].narrow(self.read_axis, 0, length_kept)
            tails = [_replaced(sequence, other, self.axis, length_kept) for other in _others(sequence, self.axis)]
            changed = [self._result(module, method, args, kwargs, other) for other in (*tails, sequence.narrow(self.axis, 0, length_kept))]
            if not all(result is not None and _same(first, result.narrow(self.read_axis, 0, length_kept)) for result in changed):
                return False
        return True

    def _result(self, module: Any, method: str, args: Any, kwargs: Any, sequence: Any) -> Any:
        """The part of the result that is read; `None` where the call leaves something behind in the module."""
        module = copy.deepcopy(module)
        before = _state(module)
        if isinstance(self.argument, int):
            args = (*args[: self.argument], sequence, *args[self.argument + 1 :])
        else:
            kwargs = {**kwargs, self.argument: sequence}
        result = getattr(module, method)(*args, **kwargs)
        if isinstance(self.part, str) and not isinstance(result, dict):
            result = getattr(result, self.part)
        elif self.part is not None:
            result = result[self.part]
        after = _state(module)
        unchanged = before.keys() == after.keys() and all(before[name] is after[name] for name in before)
        return result.detach() if unchanged else None


def _others(sequence: Any, axis: int) -> Iterator[Any]:
    """The sequence backwards, shifted by one, and its first element throughout: elements that its module takes."""
    yield sequence.flip(axis)
    yield sequence.roll(1, axis)
    yield sequence.narrow(axis, 0, 1).expand_as(sequence).clone()


def _replaced(sequence: Any, other: Any, axis: int, length: int) -> Any:
    """The first `length` elements of one sequence, and what follows in another."""
    import torch

    return torch.cat((sequence.narrow(axis, 0, length), other.narrow(axis, length, sequence.shape[axis] - length)), axis)


def _state(module: Any) -> dict[str, Any]:
    """Buffers and attributes of a module and its parts that are no modules, with the number of their changes where they are tensors."""
    import torch

    rows: dict[str, Any] = {}
    for path, part in module.named_modules():
        for name, value in (*vars(part).items(), *part._buffers.items()):
            if isinstance(value, torch.Tensor):
                rows[f"{path}.{name}"] = value
                rows[f"{path}.{name} changes"] = value._version
            elif isinstance(value, (int, float, str, type(None))):
                rows[f"{path}.{name}"] = value
    return rows


def _same(first: Any, second: Any) -> bool:
    scale = max(float(first.abs().max()), 1.0) if first.numel() else 1.0
    limit = TOLERANCE.get(str(first.dtype).removeprefix("torch."), 0.0) * scale
    return first.shape == second.shape and bool(((first - second).abs() <= limit).all() or (first == second).all())


def _cast(value: Any, dtype: Any) -> Any:
    """Arguments with their floating-point tensors in a dtype."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if type(value) in (tuple, list):
        return type(value)(_cast(item, dtype) for item in value)
    return {key: _cast(item, dtype) for key, item in value.items()} if type(value) is dict else value
