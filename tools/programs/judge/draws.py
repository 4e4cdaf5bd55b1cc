"""Random numbers of a program that runs in float64: the same numbers as in float32, widened."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from migrate_agent.tools.harness.torch_side.precision import OperatorMode
from migrate_agent.tools.programs.judge.module_frames import drawn_by_a_module
from migrate_agent.tools.programs.judge.paired import PairedDraws
from migrate_agent.tools.vendored.torch_random import _box_muller

BLOCK = 16
NARROW, WIDE = torch.float32, torch.float64
"""Bound here, since the names of narrow dtypes mean wide ones while everything is float64."""


class NativeDraws(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode in which `rand`, `randn` and their kin draw in float32, where torch draws other numbers in float64; masks are all ones."""

    def __init__(self, paired: PairedDraws) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.paired = paired

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`, with the numbers that it draws replaced."""
        kwargs = dict(kwargs or {})
        name = func.__name__.partition(".")[0]
        if name == "native_dropout":
            value, rate, train = args
            self.paired.drew |= train is not False and 0 < rate < 1
            mask = torch.ones_like(value, dtype=torch.bool)
            return (value.clone() if train is False or rate == 0 else value / (1 - rate)), mask
        if name in ("bernoulli", "bernoulli_"):
            self.paired.drew = True
            return args[0].fill_(1) if name.endswith("_") else torch.ones_like(args[0])
        if self.paired.active and name in PAIRED and drawn_by_a_module():
            return _paired(self.paired, func, name, args, kwargs)
        if self.paired.active and name == "multinomial" and args[1] == 1 and drawn_by_a_module():
            return _sampled(self.paired, args[0])
        if name in ("rand", "rand_like", "randn", "randn_like"):
            return _new(func, name, args, kwargs)
        if name == "normal":
            return _normal(self.paired, func, args, kwargs)
        if name in ("uniform_", "normal_") and args[0].dtype == WIDE:
            low, high = (*args[1:], *DEFAULTS[name][len(args) - 1 :])[:2]
            generator = kwargs.get("generator")
            # Standard numbers are those of float32, and what is made of them is computed in float64, as in the rewrite.
            if name == "uniform_":
                return args[0].copy_(uniform(args[0].shape, generator).to(WIDE) * (high - low) + low)
            return args[0].copy_(normal(args[0].numel(), generator).reshape(args[0].shape).to(WIDE) * high + low)
        return func(*args, **kwargs)


PAIRED = {
    "rand": "uniform",
    "rand_like": "uniform",
    "uniform_": "uniform",
    "randn": "normal",
    "randn_like": "normal",
    "normal_": "normal",
    "exponential_": "exponential",
}
"""Operators whose numbers are paired where a module draws them, and the kind of each."""


def _paired(paired: PairedDraws, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not name.endswith("_"):
        # Run for its dtype, device and shape alone.
        state = torch.default_generator.get_state()
        result = func(*args, **kwargs)
        torch.default_generator.set_state(state)
        return result.copy_(_tensor(paired.draw(PAIRED[name], result.shape)))
    first, second = (*args[1:], *DEFAULTS[name][len(args) - 1 :])[:2]
    numbers = _tensor(paired.draw(PAIRED[name], args[0].shape))
    if name == "uniform_":
        return args[0].copy_(first + numbers * (second - first))
    return args[0].copy_(numbers / first if name == "exponential_" else first + numbers * second)


def _sampled(paired: PairedDraws, weights: torch.Tensor) -> torch.Tensor:
    """One number of each row, as torch and JAX choose it: where weight over a standard exponential number is largest."""
    return (weights / _tensor(paired.draw("exponential", weights.shape))).argmax(-1, keepdim=True)


DEFAULTS = {"uniform_": (0.0, 1.0), "normal_": (0.0, 1.0), "exponential_": (1.0, 0.0)}


def _tensor(numbers: Any) -> torch.Tensor:
    with _unlifted():
        return torch.from_numpy(numbers)


def _normal(paired: PairedDraws, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.normal`, whose mean and deviation are tensors or numbers. The dispatcher leaves out a deviation of 1."""
    mean, deviation = (*args, 1.0)[:2]
    tensors = [one for one in args[:2] if isinstance(one, torch.Tensor)]
    shape = tuple(np.broadcast_shapes(*(tuple(one.shape) for one in tensors))) if tensors else tuple(args[2])
    dtype = tensors[0].dtype if tensors else kwargs.get("dtype") or torch.get_default_dtype()
    if dtype != WIDE:
        return func(*args, **kwargs)
    if paired.active and drawn_by_a_module():
        return _tensor(paired.draw("normal", shape)) * deviation + mean
    return normal(math.prod(shape), kwargs.get("generator")).reshape(shape).to(WIDE) * deviation + mean


def _new(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    generator = kwargs.get("generator")
    # Run for its dtype, device and shape alone; the stream must not have moved on afterwards.
    state = (generator or torch.default_generator).get_state()
    result = func(*args, **kwargs)
    (generator or torch.default_generator).set_state(state)
    if result.dtype != WIDE:
        return func(*args, **kwargs)
    if name.startswith("randn"):
        return result.copy_(normal(result.numel(), generator).reshape(result.shape))
    return result.copy_(uniform(result.shape, generator))


def uniform(shape: Sequence[int], generator: Any) -> torch.Tensor:
    """Uniform numbers below 1 in float32, whatever modes are active."""
    with _unlifted():
        return torch.empty(tuple(shape), dtype=NARROW).uniform_(generator=generator)


def normal(count: int, generator: Any) -> torch.Tensor:
    """Normal numbers (count,) in float32 as the mirror's own generator makes them of torch's stream, so that both sides have the same bits."""
    with _unlifted():
        if count < BLOCK:
            return torch.empty(count, dtype=NARROW).normal_(generator=generator)
        numbers = torch.empty(count, dtype=NARROW).uniform_(generator=generator).numpy()
        if not count % BLOCK:
            return torch.from_numpy(_box_muller(numbers))
        tail = torch.empty(BLOCK, dtype=NARROW).uniform_(generator=generator).numpy()
        whole = _box_muller(numbers[: count // BLOCK * BLOCK])
        return torch.from_numpy(np.concatenate([whole[: count - BLOCK], _box_muller(tail)]))


def widen_arrays() -> None:
    """Let arrays of NumPy become tensors of float64, for the rest of the process."""
    for name in ("from_numpy", "as_tensor", "tensor", "asarray"):
        setattr(torch, name, _widened(getattr(torch, name)))


def _widened(own: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def convert(*args: Any, **kwargs: Any) -> torch.Tensor:
        value = own(*args, **kwargs)
        return value.to(WIDE) if value.dtype == NARROW else value

    return convert


@contextmanager
def _unlifted() -> Iterator[None]:
    """A context without torch's modes: they would widen what is drawn."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield
