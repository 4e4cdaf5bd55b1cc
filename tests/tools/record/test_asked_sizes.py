"""Sizes that code asks for before it refuses a call on purpose."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.trials.trial import Trial


class OneSample(nn.Module):
    """Takes one sample, of some features."""

    def forward(self, sentence: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        assert sentence.size(0) == 1
        return sentence.sum() + other


class Channels(nn.Module):
    """Takes what has as many channels as its weight, in five axes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.channels = nn.Parameter(torch.ones(37)), 37

    def forward(self, video: torch.Tensor) -> torch.Tensor:
        x = video * 2
        if x.dim() != 5 or x.shape[-1] != self.channels:
            raise ValueError("no video")
        return x * self.weight


class Lengths(nn.Module):
    """Takes as many steps as it says, in each of two."""

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        if not (len(first) == 11 and len(second) == len(first)):
            raise RuntimeError
        return first + second


class Unpacked(nn.Module):
    """Takes images of its own size, which it reads into names first."""

    def __init__(self) -> None:
        super().__init__()
        self.frames, self.height = 5, 19

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, c, h, w = x.shape
        frames = x.size(1)
        assert h == self.height and frames == self.frames
        return x.reshape(b, c * h * w)


class Split(nn.Module):
    """Takes images of which it parts the channels, where another layer suggests as many as one part has."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 3), nn.Conv2d(2, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, two = torch.split(x, [1, 2], dim=1)
        first, second = self.first(one), self.second(two)
        assert isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)
        return first + second


class Nets(nn.Module):
    """Takes the name of one of its parts, and none by default."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleDict({"bass": nn.Linear(8, 8), "drums": nn.Linear(8, 8)})

    def forward(self, x: torch.Tensor, part: Any = None) -> torch.Tensor:
        y: torch.Tensor = self.nets[part](x[..., :8])
        return y


def test_keys_of_a_table_are_given(tmp_path: Path) -> None:
    trial = Trial(Nets, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, [], tmp_path), 20.0).run()
    assert best is not None and not best.outcome.error
    assert dict(best.attempt.call or ())["part"] in ("'bass'", "'drums'")


@pytest.mark.parametrize(
    ("cls", "shapes"),
    [
        (OneSample, [(1,)]),
        (Channels, [(None, None, None, None, 37)]),
        (Lengths, [(11,), (11,)]),
        (Unpacked, [(None, 5, 19, None)]),
        (Split, [(None, 3, None, None)]),
    ],
    ids=lambda one: str(one),
)
def test_sizes_that_are_asked_for_are_given(cls: type[nn.Module], shapes: list[tuple[int | None, ...]], tmp_path: Path) -> None:
    trial = Trial(cls, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, [], tmp_path), 20.0).run()
    assert best is not None and not best.outcome.error
    for (_, value), wanted in zip(best.attempt.call or (), shapes, strict=False):
        assert all(size in (None, found) for size, found in zip(wanted, value.shape, strict=False))  # type: ignore[union-attr]
    assert best.trials < 40
