"""What modules keep in plain attributes."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from migrate_agent.tools.harness.torch_side.held_values import held_values, noted, parted
from migrate_agent.tools.harness.torch_side.module import _left


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.table, self._own, self.calls = nn.Parameter(torch.ones(2)), torch.ones(2), torch.ones(2), 0
        self.register_buffer("mask", torch.ones(2), persistent=False)
        self.maps: dict[str, list[torch.Tensor]] = {"last": []}


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part, self.norm, self.rate = Part(), nn.BatchNorm1d(2), 0.5


def test_what_a_call_leaves_and_finds_is_told_apart() -> None:
    module = Whole()
    before = noted(held_values(module))
    assert before.keys() == {"rate", "part.table", "part.calls", "part.mask"}
    module.part.table.add_(1)
    module.part.calls += 1
    module.part.maps["last"].append(torch.zeros(3))
    left, found = parted(held_values(module), before)
    assert left.keys() == {"part.table", "part.calls", "part.maps.last.0"} and found.keys() == {"part.mask"}


def test_states_of_torchs_generator_are_left_out() -> None:
    module = Whole()
    module.state, module.bytes = torch.get_rng_state(), torch.ones(8, dtype=torch.uint8)
    assert held_values(module).keys() >= {"bytes"} and "state" not in held_values(module)


def test_numbers_of_python_keep_their_width() -> None:
    module = Whole()
    before = noted(held_values(module))
    module.rate = 1 / 3
    left = _left(module, before)
    assert left["left/rate"].dtype == np.float64 and float(left["left/rate"]) == 1 / 3
