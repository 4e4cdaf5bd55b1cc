"""Recorded calls on less, with the time of a call as the number of its elements."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from migrate_agent.tools.record.smaller import SLOW, Tensors, TimedCall, smaller

Call = Callable[..., torch.Tensor]
CALL = '_tensors["call0"], other=_tensors["call1"]'


def ran(function: Call, tensors: Tensors) -> TimedCall | None:
    given = [tensors[name] for name in sorted(tensors) if name.startswith("call")]
    try:
        made = function(*given)
    except Exception:
        return None
    return TimedCall(SLOW * sum(tensor.numel() for tensor in given) / 1000, (made.ndim,))


def linear(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ torch.ones(64, 3) + y


def checked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    assert x.shape[0] == 8
    return x.sum(2) + y[:, 0, :1]


def fading(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x if x.shape[1] > 50 else y[0, 0, 0]


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (linear, ((8, 100, 64), (8, 100, 3)), ((2, 25, 64), (2, 25, 3))),  # the width of the features stays
        (linear, ((2, 5, 64), (2, 5, 3)), ((2, 5, 64), (2, 5, 3))),  # fast enough
        (checked, ((8, 4, 128), (8, 4, 4)), ((8, 4, 16), (8, 4, 4))),
        (fading, ((8, 100, 3), (8, 100, 3)), ((2, 100, 3), (2, 100, 3))),  # what gives something else is another call
    ],
)
def test_a_slow_call_on_less(function: Call, before: tuple[tuple[int, ...], ...], after: tuple[tuple[int, ...], ...]) -> None:
    tensors = {f"call{number}": torch.rand(shape) for number, shape in enumerate(before)} | {"init0": torch.rand(8, 5000)}
    whole = ran(function, tensors)
    assert whole is not None
    kept = smaller(CALL, tensors, whole, lambda given: ran(function, given))
    assert tuple(tuple(kept[name].shape) for name in ("call0", "call1")) == after
    assert kept["init0"] is tensors["init0"]
    assert (kept is tensors) == (before == after)
