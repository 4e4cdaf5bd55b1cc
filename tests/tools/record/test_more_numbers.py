"""Inputs with enough numbers for what is normalised in training."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.trials.origins import MANY_NORMALISED, Origins
from migrate_agent.tools.record.guessing.trials.trial import Trial


class Pooled(nn.Module):
    """Normalises one number of a channel for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.Sequential(nn.Conv2d(3, 6, 1), nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(6))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        pooled: torch.Tensor = self.pool(image)
        return pooled


class Images(nn.Module):
    """Normalises each image by itself, at a 32nd of its sides."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 6, 1), nn.AvgPool2d((32, 16)), nn.InstanceNorm2d(6))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        layered: torch.Tensor = self.layers(image)
        return layered


@pytest.mark.parametrize("cls", [Pooled, Images])
def test_a_guess_gives_each_normalisation_enough_numbers(cls: type[nn.Module], tmp_path: Path) -> None:
    trial = Trial(cls, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, [], tmp_path), 20.0).run()
    assert best is not None and not best.outcome.error
    assert best.outcome.fewest_normalised >= MANY_NORMALISED


NORMALISATIONS = [
    (nn.BatchNorm2d(3), (2, 3, 1, 1), 2),
    (nn.BatchNorm2d(3).eval(), (2, 3, 1, 1), MANY_NORMALISED),
    (nn.BatchNorm1d(3, track_running_stats=False).eval(), (3, 3), 3),
    (nn.BatchNorm1d(3), (8, 3), MANY_NORMALISED),
    (nn.InstanceNorm1d(3), (8, 3, 2), 2),
    (nn.Linear(3, 3), (2, 3), MANY_NORMALISED),
]


@pytest.mark.parametrize(("layer", "shape", "numbers"), NORMALISATIONS, ids=str)
def test_numbers_of_a_normalisation_are_counted(layer: nn.Module, shape: tuple[int, ...], numbers: int) -> None:
    from torch.overrides import TorchFunctionMode

    origins = Origins()
    origins.begin({})

    class Follow(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return origins.follow(func, args, kwargs or {})

    with Follow():
        layer(torch.randn(shape))
    assert origins.fewest_normalised == numbers
