"""Deviations of numbers that are as good as equal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from migrate_agent.tools.harness.torch_side.equal_numbers import EqualNumbers

VARIED = torch.arange(48, dtype=torch.float64).sin().reshape(2, 4, 6)
CONSTANT = torch.full((2, 4, 6), 0.3, dtype=torch.float64)
ONE_ROW = torch.cat([VARIED[:, :3], CONSTANT[:, :1]], 1)
"""The last of four channels has equal numbers."""


@pytest.mark.parametrize(
    ("function", "values", "found"),
    [
        (lambda x: x.var(2), VARIED, False),
        (lambda x: x.var(2), ONE_ROW, True),
        (lambda x: x.var(1), ONE_ROW, False),
        (lambda x: x.std(), CONSTANT, True),
        (lambda x: x.std(), torch.zeros(3, dtype=torch.float64), True),
        (lambda x: x.var((0, 2)), CONSTANT + 1e-14 * VARIED, True),
        (lambda x: x.var((0, 2)), CONSTANT + 1e-9 * VARIED, False),
        (lambda x: F.batch_norm(x, None, None, training=True), VARIED, False),
        (lambda x: F.batch_norm(x, None, None, training=True), ONE_ROW, True),
        (lambda x: F.batch_norm(x, torch.zeros(4).double(), torch.ones(4).double()), CONSTANT, False),
        (lambda x: F.layer_norm(x, (6,)), VARIED, False),
        (lambda x: F.layer_norm(x, (6,)), ONE_ROW, True),
        (lambda x: F.group_norm(x, 2), ONE_ROW, False),
        (lambda x: F.group_norm(x, 4), ONE_ROW, True),
        (lambda x: F.instance_norm(x), ONE_ROW, True),
        (torch.softmax, CONSTANT, False),
    ],
)
def test_equal_numbers_are_found(function: Callable[..., torch.Tensor], values: torch.Tensor, found: bool) -> None:
    watch = EqualNumbers()
    with watch:
        function(values, 1) if function is torch.softmax else function(values)
    assert watch.found is found
