"""Smaller numbers for the constructors of what takes long."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing import search
from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.sizes.slimmer_models import slimmer, with_own_defaults
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Trial, parameters
from migrate_agent.tools.record.guessing.values import Tensor, text


def made(width: int, heads: int = 12, sizes: tuple[int, ...] = (64, 3), name: str = "x64", scale: float = 16.0) -> None:
    """A constructor with numbers of all kinds."""


WANTED = [
    (5, {"width": "192", "heads": "3", "sizes": "(16, 3)"}, 5),
    (5, {"width": "384", "heads": "6", "sizes": "(32, 3)"}, 5),
    (768, {"width": "192"}, 192),
    (768, {"width": "768", "sizes": "(16, 3)"}, 768),
]


@pytest.mark.parametrize(("size", "wanted", "wanted_size"), WANTED)
def test_numbers_of_a_constructor_are_made_smaller(size: int, wanted: dict[str, str], wanted_size: int) -> None:
    attempt = Attempt((("width", "768"),), (("x", Tensor((2, size))),))
    found = [({name: text(value) for name, value in one.init}, one.call) for one in slimmer(attempt, parameters(made))]
    assert (wanted, (("x", Tensor((2, wanted_size))),)) in found


class Deep(nn.Module):
    """Many layers, wide ones; the last two places run in each."""

    def __init__(self, width: int = 1024, depth: int = 40) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.first = nn.Linear(3, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x[..., :3])
        for layer in self.layers:
            x = layer(x)
            x = torch.tanh(x)
        return x


class Counted(Deep):
    """Needs numbers in its constructor."""

    def __init__(self, width: int = 1024, depth: int = 40) -> None:
        super().__init__(width, depth)
        self.scales = [scale.item() for scale in torch.linspace(0, 1, depth)]


@pytest.mark.parametrize(("cls", "has_shapes"), [(Deep, True), (Counted, False)])
def test_what_takes_long_is_made_smaller(cls: type[nn.Module], has_shapes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SLOW", 0.01)
    trial = Trial(cls, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, [], tmp_path), 20.0).run()
    assert best is not None and not best.outcome.error and best.whole is not None
    assert sum(parameter.numel() for parameter in trial.instance.parameters()) < 40 * 1024 * 1024 / 4
    assert trial.has_shapes(best.whole) is has_shapes
    assert trial.example(best.whole).init in {"width=1024", "depth=40", "width=1024, depth=40"}


class Settings:
    """An object with numbers by default."""

    def __init__(self, words: int = 50257, width: int = 768, depth: int = 12, rate: float = 0.1, name: str = "gpt") -> None:
        self.words, self.width = words, width


@pytest.mark.parametrize(
    ("source", "text_with_numbers"),
    [
        ("Settings()", "Settings(words=50257, width=768, depth=12)"),
        ("Settings(100, depth=3)", "Settings(100, depth=3, width=768)"),
        ("Settings(*sizes)", "Settings(*sizes)"),
        ("Other()", "Other()"),
        ("64", "64"),
        ("not (", "not ("),
    ],
)
def test_objects_are_spelled_with_their_numbers(source: str, text_with_numbers: str) -> None:
    assert with_own_defaults(source, {"Settings": Settings}) == text_with_numbers


def test_a_table_shrinks_with_what_is_looked_up_in_it() -> None:
    attempt = Attempt((("settings", "Settings()"),), (("ids", Tensor((2, 16), "integer", 50257)),))
    first = next(iter(slimmer(attempt, [], {"Settings": Settings})))
    assert first.init == (("settings", "Settings(words=16, width=192, depth=3)"),)
    assert first.call == (("ids", Tensor((2, 16), "integer", 16)),)
