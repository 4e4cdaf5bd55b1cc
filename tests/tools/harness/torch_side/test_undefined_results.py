"""Results that are up to the machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from migrate_agent.tools.harness.torch_side.undefined_results import NearestIntegers, UndefinedResults

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
        # Where NaN is among the largest is defined: it is the largest.
        (lambda: NAN.topk(1)[0], False),
    ],
)
def test_what_the_machine_decides_is_found(function: Callable[[], torch.Tensor], found: bool) -> None:
    with UndefinedResults() as mode:
        function()
    assert mode.found is found


@pytest.mark.parametrize(
    ("function", "expected", "narrow"),
    [
        (lambda: torch.tensor([torch.nan, torch.inf, -torch.inf, 2.5]).long(), [0, 2**63 - 1, -(2**63), 2], [0, 2**31 - 1, -(2**31), 2]),
        (lambda: torch.tensor([-3e9, 1e30]).long(), [-3_000_000_000, 2**63 - 1], [-(2**31), 2**31 - 1]),
        (lambda: torch.tensor([300.0, -1.0, torch.nan, 7.9]).to(torch.uint8), [255, 0, 0, 7], [255, 0, 0, 7]),
        (lambda: torch.ones(2, dtype=torch.int32).copy_(NAN), [1, 0], [1, 0]),
        (lambda: NAN.bool(), [True, True], [True, True]),
        (lambda: torch.tensor([1, 2]).float().int(), [1, 2], [1, 2]),
    ],
)
def test_what_xla_makes_of_them(function: Callable[[], torch.Tensor], expected: list[int], narrow: list[int]) -> None:
    for is_narrow, values in ((False, expected), (True, narrow)):
        with NearestIntegers(is_narrow):
            result = function()
        assert result.tolist() == values
