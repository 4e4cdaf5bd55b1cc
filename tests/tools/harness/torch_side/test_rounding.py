"""Rounding noise in torch's results."""

from __future__ import annotations

import torch

from migrate_agent.tools.harness.torch_side.rounding import RoundingNoise


def test_what_is_computed_in_place_gets_noise_too() -> None:
    with RoundingNoise(1):
        found = [torch.full((3,), 0.3, dtype=torch.float64).sigmoid_(), torch.sigmoid(torch.full((3,), 0.3, dtype=torch.float64))]
        kept = torch.zeros(3, dtype=torch.float64).copy_(torch.full((3,), 0.3, dtype=torch.float32))
    exact = torch.sigmoid(torch.full((3,), 0.3, dtype=torch.float64))
    for value in found:
        assert 0 < (value - exact).abs().max() < 1e-15
    assert torch.equal(kept, torch.full((3,), 0.3, dtype=torch.float32).double())
