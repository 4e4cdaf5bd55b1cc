"""Tensors that a constructor is given: their sizes, and arrays of NumPy in their place; and parameters that nothing sets."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.sizes.made_tensors import arrays_in_constructor, made_sizes
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, Stage, Trial
from migrate_agent.tools.record.guessing.trials.unset_memory import set_memory

ATTEMPT = Attempt((("adj_mx", "scaled(torch.ones(8, 8))"), ("width", "8")), ())
SAID = [
    ("RuntimeError: The size of tensor a (8) must match the size of tensor b (64) at 2", ["scaled(torch.ones(64, 64))"], []),
    ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x5 and 8x3)", ["scaled(torch.ones(5, 5))"], []),
    ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x5 and 6x3)", [], []),
    ("TypeError: sum() got an unexpected keyword argument 'axis'", [], ["scaled(torch.ones(8, 8).numpy())"]),
    ("TypeError: sum() got an unexpected keyword argument 'width'", [], []),
]


@pytest.mark.parametrize(("error", "sizes", "arrays"), SAID)
def test_tensors_of_a_constructor_follow_what_an_error_says(error: str, sizes: list[str], arrays: list[str]) -> None:
    outcome = Outcome(Stage.CALL, error=error)
    assert [dict(one.init)["adj_mx"] for one in made_sizes(ATTEMPT, outcome)] == sizes
    assert [dict(one.init)["adj_mx"] for one in arrays_in_constructor(ATTEMPT, outcome)] == arrays


class Graph(nn.Module):
    """Computes with its adjacency matrix in NumPy, and leaves its weights to be set."""

    def __init__(self, adjacency: "np.ndarray", nodes: int) -> None:
        super().__init__()
        degrees = np.sum(adjacency, axis=1)
        self.scaled: torch.Tensor
        self.register_buffer("scaled", torch.from_numpy(adjacency / degrees))
        self.weight = nn.Parameter(torch.full((nodes, nodes), float("nan")))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given: torch.Tensor = x @ (self.scaled * self.weight)
        return given


def test_a_graph_is_found(tmp_path: Path) -> None:
    trial = Trial(Graph, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, [], tmp_path), 20.0).run()
    assert best is not None and not best.outcome.error


@pytest.mark.parametrize(("held", "is_set"), [(float("nan"), True), (1e38, True), (0.5, False), (0.0, False)])
def test_parameters_that_hold_no_numbers_are_drawn(held: float, is_set: bool) -> None:
    layer = nn.Linear(3, 3)
    nn.init.constant_(layer.weight, held)
    set_memory(layer)
    assert bool((layer.weight == held).all()) is not is_set
    assert bool(layer.weight.isfinite().all())
