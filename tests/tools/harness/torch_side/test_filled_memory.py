"""Memory that a constructor leaves as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from migrate_agent.tools.harness.torch_side.filled_memory import FilledMemory
from migrate_agent.tools.harness.torch_side.module import Original

MODULE = """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Parameter(torch.FloatTensor(2, 3))
        self.scaled = nn.Parameter(torch.empty(3) * 2)
        self.filled = nn.Parameter(torch.empty(3).uniform_())
        self.part = nn.Parameter(torch.empty(3))
        nn.init.zeros_(self.part.data[:2])
        self.fc = nn.Linear(3, 3)
        self.register_buffer("steps", torch.empty(2, dtype=torch.long))
        self.register_buffer("missing", torch.full((2,), float("nan")))

    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.FloatTensor(2, 3),
        lambda: torch.Tensor(2),
        lambda: torch.empty(3, dtype=torch.int64),
        lambda: torch.empty_like(torch.full((3,), 7.0)),
        lambda: torch.full((3,), 7.0).new_empty(2),
        lambda: torch.empty_strided((2, 2), (1, 2)),
    ],
)
def test_unset_memory_is_filled(make: Callable[[], torch.Tensor], value: int) -> None:
    with FilledMemory(value):
        assert (make() == value).all()


def test_what_a_constructor_leaves_unset_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "left_as_it_is.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    original = Original("left_as_it_is", "M", {"init": "", "call": "torch.ones(2, 3)", "setup": ""}, None)
    assert original.unset(0) == {"left", "scaled", "steps"}
    assert not original.native.left.detach().any()
