"""Depths of the repository's own where small ones leave parts of a model out."""

import sys
from pathlib import Path

import pytest
import torch

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.trials.trial import Trial

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
