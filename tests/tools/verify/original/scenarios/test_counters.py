"""Counters among the buffers are set further on, all that may be, in few calls of the original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate_agent.tools.harness.torch_side.line_coverage import Lines
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.verify.original.scenarios.menu import with_later_counters
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, index=None, flags=()):
        super().__init__()
        self.norms = nn.Sequential(*[nn.BatchNorm1d(3) for _ in range(16)])
        self.table, self.index = nn.Parameter(torch.ones(3)), index
        if index is not None:
            self.register_buffer("at", torch.tensor(index))
        for name in flags:
            self.register_buffer(name, torch.tensor(False))

    def forward(self, x):
        if getattr(self, "one", False) and getattr(self, "other", False):
            raise ValueError("one of both")
        return self.norms(x) * (1.0 if self.index is None else self.table[self.at])
"""

CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "all": ("", {}, 2),
    "an index goes one further": ("index=1", {"at": 2}, 20),
    "an index that is at its end stays": ("index=2", {"at": 2}, 20),
    "one of two flags": ("flags=('one', 'other')", {"one": True, "other": False}, 20),
    "an index and flags": ("index=0, flags=('one', 'other')", {"at": 1, "one": True, "other": False}, 24),
}
"""The constructor's arguments, the counters that are not 100,000 then, and the most forward passes."""


@pytest.mark.parametrize("case", CASES)
def test_counters_are_set_together(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init, expected, most = CASES[case]
    name = f"counters_{abs(hash(case))}"
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{name}.py").write_text(SOURCE)
    texts = {"init": init, "call": "torch.randn(2, 3)", "setup": "import torch", "method": ""}
    writer = ScenarioWriter(Original(name, "Net", texts, None), 0, texts, tmp_path, 0, Lines("Net", tmp_path))
    writer.states = {0: writer.original.state()}
    calls, run = list[str](), writer.original.run

    def counted(state: Any, values: Any, mode: str) -> Any:
        calls.append(mode)
        return run(state, values, mode)

    monkeypatch.setattr(writer.original, "run", counted)
    found = with_later_counters(writer)
    changed = {key: value for key, value in found.items() if value.size == 1 and value.dtype.kind in "bi"}
    assert changed == {**{key: np.array(100_000) for key in changed if "num_batches" in key}, **expected}
    assert len([key for key in changed if "num_batches" in key]) == 16
    assert len(calls) <= most
    assert _one_by_one(writer) == changed


def _one_by_one(writer: ScenarioWriter) -> dict[str, object]:
    """What is found by trying the counters one after the other."""
    state = dict(writer.states[0])
    counters = [key for key, value in state.items() if value.size == 1 and value.dtype.kind in "bi"]
    for key in counters:
        value = state[key]
        for later in (~value,) if value.dtype.kind == "b" else (np.full_like(value, 100_000), value + 1):
            try:
                writer.original.run({**state, key: later}, writer.values(0), "eval")
            except (ValueError, IndexError):
                continue
            state[key] = later
            break
    return {key: state[key] for key in counters}
