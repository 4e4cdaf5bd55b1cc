"""What arguments are by what code does with them."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing.objects.taken_apart import taken_apart
from migrate_agent.tools.record.guessing.repairs import _each_scaled, _fewer
from migrate_agent.tools.record.guessing.tensor_uses import unpacked, used_as_arrays, used_as_numbers, used_as_sizes, used_as_tensors
from migrate_agent.tools.record.guessing.trials.trial import Attempt
from migrate_agent.tools.record.guessing.values import Tensor, text


def trend(thetas: Any, t: Any, degree: Any) -> Any:
    return thetas @ torch.tensor(np.array([t**i for i in range(degree)])).float()


def weighted(x: torch.Tensor, counts: Any, grid: np.ndarray, mixed: np.ndarray | torch.Tensor) -> Any:
    return x * torch.from_numpy(counts).float() + torch.as_tensor(grid) + mixed


def halves(x: Any, mask: Any) -> Any:
    return x, mask.astype(bool)


def measured(x: Any, y: Any) -> Any:
    return np.mean(x.detach().cpu().numpy()) * np.prod(x.shape) * np.sqrt(len(y))


@pytest.mark.parametrize(
    ("function", "names"), [(trend, {"i", "t"}), (weighted, {"counts", "grid"}), (halves, {"mask"}), (measured, set()), (None, set())]
)
def test_arrays_of_numpy(function: Any, names: set[str]) -> None:
    assert used_as_arrays(function) == names


def partition(x: Any, window: Any, grid: Any, size: Any, steps: Any, width: Any) -> Any:
    """Sizes alone, in tuples, and beside tensors."""
    rows, columns = grid
    for _ in range(steps):
        x = x.view(-1, x.shape[1] // window, window, rows, columns, size[0])
    return x * width, torch.zeros((int(window), 1))


def test_numbers_and_sizes() -> None:
    assert used_as_numbers(partition) - used_as_tensors(partition) == {"window", "steps", "rows", "columns"}
    assert used_as_sizes(partition) - used_as_tensors(partition) == {"grid", "size"}


def test_what_takes_too_long_is_tried_with_less() -> None:
    """With four of everything first: one number alone may be that of the layers."""
    attempt = Attempt((("width", "64"), ("depth", "32"), ("rate", "0.1")), (("x", Tensor((2, 64))),))
    smaller = list(islice(_fewer(attempt), 3))
    assert [one.call for one in smaller] == [None] * 3
    assert [dict(one.init)["width"] for one in smaller] == ["4", "2", "64"]
    assert [dict(one.init)["depth"] for one in smaller] == ["4", "32", "2"]


def test_sizes_that_are_folded_into_channels() -> None:
    assert list(_each_scaled((2, 3, 8, 16), 48, 75)) == [(2, 3, 8, 25)]


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell: nn.Module = nn.LSTMCell(8, 5)

    def forward(self, inputs: Any) -> Any:
        x, (h, c) = inputs
        return self.cell(x, (h, c))


class Stacked(Remembering):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(8, 5, num_layers=2, bidirectional=True)


@pytest.mark.parametrize(("module", "state"), [(Remembering(), "torch.randn(3, 5)"), (Stacked(), "torch.randn(4, 3, 5)")])
def test_states_beside_what_they_are_handed_with(module: nn.Module, state: str) -> None:
    first, *others = taken_apart(unpacked(module.forward, "inputs"), Tensor((3, 8)), module, lambda name, main: main)
    assert text(first) == f"(torch.randn(3, 8), ({state}, {state}))"
    assert [text(other) for other in others] == ["(torch.randn(3, 8), (torch.randn(3, 8), torch.randn(3, 8)))"]
