"""Configurations in which sizes of the inputs change with a number of the constructor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from migrate_agent.tools.harness.common.argument_changes import Changes
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.verify.original.scenarios.special_sizes import with_inputs, with_tied

SOURCE = """
import torch
from torch import nn

class Window(nn.Module):
    def __init__(self, side=4, hidden=5):
        super().__init__()
        self.side = side
        self.bias = nn.Parameter(torch.randn(side, side))
        self.hidden = nn.Linear(1, hidden)

    def forward(self, x):
        return self.hidden((x.unflatten(1, (self.side, self.side)) + self.bias)[..., None])

class Plain(nn.Module):
    def __init__(self, d=6, hidden=12):
        super().__init__()
        self.inner, self.outer = nn.Linear(d, hidden), nn.Linear(hidden, d)

    def forward(self, x):
        return self.outer(self.inner(x))
"""


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Callable[[str, str, Changes], Original]:
    """Constructs a unit with other arguments."""
    name = f"special_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda cls, call, changes: Original(name, cls, {"init": "", "call": call, "setup": "import torch", "changes": changes}, None)


@pytest.mark.parametrize(
    ("cls", "call", "tied_sizes", "equal_sizes"),
    [
        ("Window", "torch.randn(3, 16)", [({"side": 2}, (3, 4))], []),
        ("Plain", "torch.randn(3, 6)", [], [({"d": 3}, (3, 3))]),
    ],
)
def test_sizes_go_along(
    cls: str,
    call: str,
    tied_sizes: list[tuple[Changes, tuple[int, ...]]],
    equal_sizes: list[tuple[Changes, tuple[int, ...]]],
    make: Callable[[str, str, Changes], Original],
) -> None:
    plain = make(cls, call, {})
    for find, expected in ((with_tied, tied_sizes), (with_inputs, equal_sizes)):
        found = find(plain, lambda changes: make(cls, call, changes), plain.proposals(), 1.0)
        assert [(unit.changes, unit.leaves[0].value.shape) for unit in found] == expected
