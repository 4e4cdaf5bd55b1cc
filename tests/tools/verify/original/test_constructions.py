"""Which further constructions have their initial values compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.verify.original.scenarios.constructions import Constructions

SOURCE = """
from torch import nn


class Part(nn.Module):
    def __init__(self, n, bias=True):
        super().__init__()
        if bias:
            self.fc = nn.Linear(n, n)
        else:
            self.fc = nn.Linear(n, n, bias=False)

    def forward(self, x):
        return self.fc(x)


class Net(nn.Module):
    def __init__(self, part, n=4, wide=False):
        super().__init__()
        self.part = part
        self.fc = nn.Linear(n, 2 * n)
        if wide:
            self.fc = nn.Linear(n, 3 * n)

    def forward(self, x):
        return self.fc(self.part(x))
"""
TWICE = [("Part(4)", True), ("Part(4), wide=True", True), ("Part(4, bias=False), wide=True", False), ("Part(4), wide=False", False)]


def test_other_code_of_the_unit_or_few_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "constructions_net.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(budgets, "INIT_CONFIGURED", 0)
    arguments = {"module": "constructions_net", "name": "Net", "roots": (), "parts": {}}
    constructions = Constructions()
    for init, adds in TWICE:
        texts = {"init": init, "call": "torch.randn(2, 4)", "setup": "", "train": None, "domain": None}
        assert constructions.adds(Original.of_job(arguments, texts, None)) == adds, init
    monkeypatch.setattr(budgets, "INIT_CONFIGURED", 100)
    assert constructions.adds(Original.of_job(arguments, {**texts, "init": "Part(4)"}, None))
    sys.modules.pop("constructions_net")
