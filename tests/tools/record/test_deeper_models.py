"""Depths of the repository's own where small ones leave parts of a model out."""

import sys
from pathlib import Path

import pytest
import torch

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.trials.fewer_numbers import shallower
from migrate_agent.tools.record.guessing.trials.trial import Arguments, Attempt, Trial
from migrate_agent.tools.record.guessing.values import Fields, Tensor, text

PARSER = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--depth', type=int, default={depth})\nargs = p.parse_args()\n"


class Blocks(torch.nn.Module):
    """Of `(depth - 2) // 6` blocks."""

    def __init__(self, config: dict[str, int]) -> None:
        super().__init__()
        assert (config["depth"] - 2) % 6 == 0
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range((config["depth"] - 2) // 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[..., :3]
        for block in self.blocks:
            x = block(x)
            x = x + 1
        return x


class Layers(torch.nn.Module):
    """Of as many layers as its depth."""

    def __init__(self, config: dict[str, int]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(config["depth"]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[..., :3]
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.parametrize(("cls", "own", "depths"), [(Blocks, 26, {8, 26}), (Layers, 6, {2})])
def test_a_depth_is_as_small_as_reaches_all_places(cls: type[torch.nn.Module], own: int, depths: set[int], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PARSER.format(depth=own) + "config = {'depth': args.depth}\n")
    files = [(tmp_path / "train.py", "train")]
    trial = Trial(cls, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, files, tmp_path), 20.0).run()
    assert best is not None and not best.outcome.error
    # Where the whole depth is fast, it is taken.
    assert trial.example(best.attempt).init in {f"{{'depth': {depth}}}" for depth in depths}


class NamedDepth(Blocks):
    """The same, of a number that its name says is a depth."""

    def __init__(self, depth: int) -> None:
        super().__init__({"depth": depth})


def test_a_depth_that_a_name_alone_suggests_is_no_smaller(tmp_path: Path) -> None:
    program = "p.add_argument('--wide', type=int, default=3)\nnet = NamedDepth(args.depth)\n"
    (tmp_path / "train.py").write_text(PARSER.format(depth=26) + "from nets import NamedDepth\n" + program)
    trial = Trial(NamedDepth, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, [(tmp_path / "train.py", "train")], tmp_path), 20.0).run()
    assert best is not None and not best.outcome.error
    assert trial.example(best.attempt).init in ("8", "26")


SETTINGS = Fields((("n_groups", "10"), ("n_resblocks", "64"), ("n_feats", "64"), ("groups", "8")), "namespace")


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ((("width", "64"), ("num_layers", "12")), ["64, 2"]),
        ((("blocks", "2"), ("width", "512")), []),
        (
            (("args", SETTINGS),),
            [
                "types.SimpleNamespace(n_groups=2, n_resblocks=2, n_feats=64, groups=8)",
                "types.SimpleNamespace(n_groups=2, n_resblocks=64, n_feats=64, groups=8)",
                "types.SimpleNamespace(n_groups=10, n_resblocks=2, n_feats=64, groups=8)",
            ],
        ),
    ],
)
def test_slow_models_are_tried_with_fewer_parts(init: Arguments, expected: list[str]) -> None:
    assert [", ".join(text(value) for _, value in attempt.init) for attempt in shallower(Attempt(init, ()))] == expected


class Deep(torch.nn.Module):
    """Of as many layers as the program asks for, which take long."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(num_layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def test_a_slow_model_becomes_a_shallow_one(tmp_path: Path) -> None:
    trial = Trial(Deep, sys.modules[__name__], [str(Path(__file__).parent)])
    search = Search(trial, Options(trial, [], tmp_path), 20.0)
    attempt = Attempt((("num_layers", "1500"),), (("x", Tensor((2, 3))),))
    search._slim(search._found(attempt, search._run(attempt)))
    assert search.best is not None
    (depth,) = (text(value) for _, value in search.best.attempt.init)
    assert 2 <= int(depth) <= 250


class Classifier(torch.nn.Module):
    """Of very many classes, by default."""

    def __init__(self, width: int = 64, classes: int = 50_000) -> None:
        super().__init__()
        self.head = torch.nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(x)
        return scores


@pytest.mark.parametrize(("init", "expected"), [((), (("classes", "16"),)), ((("classes", "2000"),), (("classes", "2000"),))])
def test_a_large_model_is_tried_with_few_classes(init: Arguments, expected: Arguments, tmp_path: Path) -> None:
    trial = Trial(Classifier, sys.modules[__name__], [str(Path(__file__).parent)])
    search = Search(trial, Options(trial, [], tmp_path), 20.0)
    attempt = Attempt(init, (("x", Tensor((2, 64))),))
    found = search._found(attempt, search._run(attempt))
    search._slim(found)
    assert (search.best or found).attempt.init == expected
