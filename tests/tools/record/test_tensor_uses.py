"""What arguments are by what code does with them."""

from __future__ import annotations

from itertools import islice
from typing import Any

import torch

from migrate_agent.tools.record.guessing.repairs import _each_scaled, _fewer
from migrate_agent.tools.record.guessing.tensor_uses import used_as_numbers, used_as_sizes, used_as_tensors
from migrate_agent.tools.record.guessing.trials.trial import Attempt
from migrate_agent.tools.record.guessing.values import Tensor


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
