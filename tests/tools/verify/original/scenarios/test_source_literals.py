"""Numbers of the original's code as inputs."""

from __future__ import annotations

import numpy as np
import torch

from migrate_agent.tools.harness.common import input_sampling
from migrate_agent.tools.verify.original.scenarios import source_literals


class Thresholds(torch.nn.Module):
    """Numbers in a function and a layer, none of them large."""

    def __init__(self) -> None:
        super().__init__()
        self.shrink = torch.nn.Hardshrink(0.4)
        self.limit, self.flag, self.many = 0.7, True, 10**6

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compares with a number that stands in it."""
        return torch.where(x <= -0.1, self.shrink(x), self.limit)


def test_numbers_of_the_code_become_inputs() -> None:
    numbers = source_literals.numbers(Thresholds())
    assert {0.4, 0.7, 0.1} <= set(numbers) and not {0.0, 1.0e6} & set(numbers)
    signal, mask = input_sampling.Leaf(np.linspace(1, 2, 40).reshape(4, 10), "float32"), input_sampling.Leaf(np.ones(3), "float32")
    found = source_literals.at([signal, mask, signal], numbers)
    assert found is not None and {0.4, -0.1} <= set(found[0].flat) and (found[1] == 1).all()
    assert 0 < np.mean(found[0] == found[2]) < 1
    assert source_literals.at([mask], numbers) is None and source_literals.at([signal], []) is None
