"""Results that are up to the machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from migrate_agent.tools.harness.torch_side.undefined_results import UndefinedResults

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
