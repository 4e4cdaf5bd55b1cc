"""Inputs that have to fit what a model makes of others: the search mends them by what torch says of the operation that failed."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.trials.trial import Trial


class Critic(nn.Module):
    """Joins features of images with numbers as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(10, 1)

    def forward(self, image: torch.Tensor, action: torch.Tensor) -> Any:
        return self.fc(torch.cat([self.encoder(image), action], 1))


class Sites(nn.Module):
    """Reads keys of a dictionary, whose tensors have other ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.depot, self.node = nn.Linear(2, 8), nn.Linear(3, 8)

    def forward(self, sites: dict[str, torch.Tensor]) -> Any:
        nodes = torch.cat((sites["loc"], *(sites[name][:, :, None] for name in ("demand",))), -1)
        return torch.cat((self.depot(sites["depot"])[:, None], self.node(nodes)), 1)


class Windows(nn.Module):
    """Views what a convolution over a window gives as one position for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.items, self.users = nn.Embedding(20, 6), nn.Embedding(20, 6)
        self.conv = nn.Conv2d(1, 2, (5, 1))
        self.fc = nn.Linear(18, 3)

    def forward(self, items: torch.Tensor, users: torch.Tensor) -> Any:
        assert len(items) == len(users)
        across = self.conv(self.items(items)[:, None]).view(-1, 12)
        return self.fc(torch.cat((across, self.users(users).squeeze(1)), 1))


class Positions(nn.Module):
    """Computes with NumPy's arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 4)

    def forward(self, log: np.ndarray) -> Any:
        places = np.tile(np.arange(1, log.shape[1] + 1), [log.shape[0], 1])
        places *= log != 0
        return self.table(torch.LongTensor(places)) + self.table(torch.LongTensor(log))


class Counted(nn.Module):
    """Looks up places that its inputs say, from 0 to 1."""

    def forward(self, x: torch.Tensor) -> Any:
        table = torch.arange(9.0)[:, None].expand(9, x.shape[-1])
        return table.gather(0, (8 * x.reshape(-1, x.shape[-1])).long().clamp(max=8)) + x.frac().mean()


class Actor(nn.Module):
    """Takes one state, and gives the number of an action."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, state: torch.Tensor) -> Any:
        scores = self.fc(state)
        return scores.argmax(-1).item(), scores


CASES: dict[type[nn.Module], set[str]] = {
    Critic: {"torch.randn(2, 6)"},
    Sites: {"'depot': torch.randn(2, 2)", "'demand': torch.randn(2, 16)"},
    Windows: {"torch.randint(0, 20, (2, 5))"},
    Positions: {".numpy()"},
    Counted: {"torch.rand("},
    Actor: {"torch.randn(4)"},
}


@pytest.mark.parametrize("cls", CASES)
def test_inputs_fit(cls: type[nn.Module]) -> None:
    trial = Trial(cls, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, []), 20.0).run()
    assert best is not None and not best.outcome.error
    call = trial.example(best.attempt).call
    assert all(part in call for part in CASES[cls]), call


class Pair(nn.Module):
    """Calls one part on what the other one gives."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, x: torch.Tensor) -> Any:
        return self.decoder(2 * self.encoder(x))


def test_parts_that_are_handed_over_compute_something_each() -> None:
    """Of two parts that hand back what they take, nothing tells which one is called."""
    trial = Trial(Pair, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, []), 20.0).run()
    assert best is not None and trial.example(best.attempt).init == "torch.nn.Tanh(), torch.nn.Sigmoid()"
