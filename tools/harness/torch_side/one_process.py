"""Lets code that sends values between processes run in one. Used inside the sandbox, on the original's side.

Without a process group torch raises. Here its functions do what they do in a group of one process: a sum over processes is the value itself.
Whether there is a group is still answered with no, so that code with a way of its own for a single process takes that.
https://docs.pytorch.org/docs/stable/distributed.html
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed


class Finished:
    """The handle of an operation that is over: what `async_op=True` gives."""

    def wait(self, timeout: object = None) -> bool:
        """Waits for nothing."""
        return True

    def is_completed(self) -> bool:
        """Always true."""
        return True


def _stay(value: object, *others: object) -> None:
    """A value that all processes hold afterwards: that of the only one."""


def _copy(target: torch.Tensor, source: torch.Tensor, *others: object) -> None:
    if target.dtype != source.dtype or target.numel() != source.numel():
        raise ValueError(
            f"a tensor of {source.dtype} {list(source.shape)} cannot be received in one of {target.dtype} {list(target.shape)}"
        )
    with torch.no_grad():
        target.copy_(source.detach().reshape(target.shape))


def _copy_into_list(targets: list[Any], source: torch.Tensor, *others: object) -> None:
    _copy(_only(targets), source)


def _copy_from_list(target: torch.Tensor, sources: Sequence[torch.Tensor] | None = None, *others: object) -> None:
    _copy(target, _only(sources))


def _copy_lists(targets: Sequence[torch.Tensor], sources: Sequence[torch.Tensor], *others: object) -> None:
    _copy(_only(targets), _only(sources))


def _gather(source: torch.Tensor, targets: Sequence[torch.Tensor] | None = None, *others: object) -> None:
    _copy(_only(targets), source)


def _keep_object(objects: list[Any], value: object, *others: object) -> None:
    _only(objects)
    objects[0] = value


def _keep_own_object(value: object, objects: list[Any] | None = None, *others: object) -> None:
    _keep_object(objects if objects is not None else [], value)


def _only(values: Sequence[Any] | None) -> Any:
    if values is None or len(values) != 1:
        raise ValueError(f"one process sends and receives one value, not {0 if values is None else len(values)}")
    return values[0]


ANSWERS: Mapping[str, Any] = {"get_world_size": 1, "get_rank": 0, "get_backend": "gloo", "new_group": None, "barrier": None}
"""What torch's functions give in a group of one process; `barrier` too, which has no value to send."""
EXCHANGES: Mapping[str, Callable[..., None]] = {
    "all_reduce": _stay,
    "broadcast": _stay,
    "reduce": _stay,
    "all_gather": _copy_into_list,
    "all_gather_into_tensor": _copy,
    "all_gather_single": _copy,
    "all_to_all": _copy_lists,
    "all_to_all_single": _copy,
    "gather": _gather,
    "reduce_scatter": _copy_from_list,
    "reduce_scatter_tensor": _copy,
    "reduce_scatter_single": _copy,
    "scatter": _copy_from_list,
    "all_gather_object": _keep_object,
    "broadcast_object_list": _stay,
    "gather_object": _keep_own_object,
}
"""The functions that send values → what each does in one process, given torch's arguments in torch's order."""


def run_alone() -> None:
    """From now on, torch's functions for several processes do in this process what they do in a group of one, as long as there is no group."""
    module: Any = torch.distributed
    if not module.is_available() or isinstance(module.get_rank, functools.partial):
        return
    for name, answer in ANSWERS.items():
        setattr(module, name, functools.partial(_answer, getattr(module, name), answer))
    for name in EXCHANGES.keys() & set(dir(module)):  # some are newer than others
        setattr(module, name, functools.partial(_exchange, getattr(module, name), EXCHANGES[name]))


def _answer(own: Callable[..., Any], answer: object, *args: Any, **options: Any) -> Any:
    if torch.distributed.is_initialized():
        return own(*args, **options)
    return Finished() if options.get("async_op") else answer


def _exchange(own: Callable[..., Any], exchange: Callable[..., None], *args: Any, **options: Any) -> Any:
    if torch.distributed.is_initialized():
        return own(*args, **options)
    exchange(*inspect.signature(own).bind(*args, **options).args)
    return Finished() if options.get("async_op") else None
