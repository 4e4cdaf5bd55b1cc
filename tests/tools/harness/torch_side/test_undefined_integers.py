"""Integers that are made of what no integer stands for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from migrate_agent.tools.harness.torch_side.undefined_integers import UndefinedIntegers

NAN, INFINITE, LARGE = (torch.tensor([1.5, value], dtype=torch.float64) for value in (torch.nan, -torch.inf, 1e30))
USUAL = torch.tensor([-2.5, 127.9], dtype=torch.float64)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda: NAN.long(), True),
        (lambda: INFINITE.to(torch.int32), True),
        (lambda: LARGE.long(), True),
        (lambda: torch.zeros(2, dtype=torch.int64).copy_(NAN), True),
        (lambda: (USUAL + 1).to(torch.int8), True),
        (lambda: USUAL.to(torch.int8), False),
        (lambda: NAN.float(), False),
        (lambda: NAN.bool(), False),
        (lambda: (NAN > 1).long(), False),
        (lambda: LARGE.floor(), False),
    ],
)
def test_conversions_beyond_the_range_are_found(function: Callable[[], torch.Tensor], found: bool) -> None:
    with UndefinedIntegers() as mode:
        function()
    assert mode.found is found
