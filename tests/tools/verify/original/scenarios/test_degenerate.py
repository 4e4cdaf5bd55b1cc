"""Configurations at the ends of what numbers may be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.tools.harness.common.argument_changes import Changes
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.verify.original.scenarios.degenerate import at_ends, constructed_small, of_few_rows

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self, width=8, reduction=4, rate=0.3, share=0.2, bound=2.0):
        super().__init__()
        self.down = nn.Linear(width, width // reduction, bias=False)
        self.up = nn.Linear(width // reduction, width)
        self.rate, self.share, self.bound = rate, share, bound

    def forward(self, x):
        y = self.share * F.dropout(self.up(self.down(x)), self.rate, self.training)
        return x / self.bound + y
"""
Make = Callable[[Changes], Original]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Make:
    """Constructs the unit with other arguments."""
    name = f"degenerate_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    texts = {"init": "", "call": "torch.randn(5, 8)", "setup": "import torch"}
    return lambda changes: Original(name, "Net", {**texts, "changes": changes}, None)


def numbers(unit: Original) -> dict[str, tuple[Any, ...]]:
    return {name: options for name, options in unit.proposals().items() if not isinstance(options[0], bool)}


def test_rates_are_at_their_ends(make: Make) -> None:
    found = [unit.changes for unit in at_ends(make({}), make, 1.0)]
    # `bound` is no rate, and zero divides; where everything is dropped, the share shows no more.
    assert found == [{"rate": 1.0, "share": 1.0}, {"share": 1.0}, {"rate": 0.0, "share": 0.0}]


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors:UserWarning")
def test_sizes_leave_few_rows(make: Make) -> None:
    plain = make({})
    found = [(unit.changes, unit.leaves[0].value.shape) for unit in of_few_rows(plain, make, numbers(plain), 1.0)]
    assert found == [({"reduction": 9}, (5, 8)), ({"width": 1}, (5, 1))]
    assert [unit.changes for unit in constructed_small(plain, make, numbers(plain))] == [{"width": 1}]
