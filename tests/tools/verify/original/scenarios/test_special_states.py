"""Parameters with which the original is finite elsewhere, and calls that read what other methods left."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.harness.torch_side.line_coverage import Lines
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.verify.original.scenarios.call_order import call_in_order
from migrate_agent.tools.verify.original.scenarios.special_states import special_states
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, sign=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.diag(torch.tensor([1.0, 2.0, 3.0 * sign])))
        self._inverse = None

    def store(self):
        self._inverse = torch.inverse(self.weight)

    def size(self):
        return self.weight.sum()

    def forward(self, x, back=False):
        if back:
            return x @ (torch.inverse(self.weight) if self._inverse is None else self._inverse)
        return x @ self.weight, torch.logdet(self.weight)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ScenarioWriter:
    """Writes the scenarios of the first example."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"special_{abs(hash(request.node.name))}.py").write_text(SOURCE)
    return writer_of(tmp_path, request.node.name, 0, init=str(getattr(request, "param", "")))


def writer_of(folder: Path, name: str, index: int, init: str = "", call: str = "torch.randn(2, 3)", method: str = "") -> ScenarioWriter:
    texts = {"init": init, "call": call, "setup": "import torch", "method": method}
    unit = Original(f"special_{abs(hash(name))}", "Net", texts, None)
    for part in ("given/states", "given/inputs", "expected"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    writer = ScenarioWriter(unit, index, texts, folder, 0, Lines("Net", folder))
    writer.states = {0: unit.state()}
    return writer


@pytest.mark.parametrize("write", ["1.0", "-1.0"], indirect=True)
def test_signs_and_rows_of_zeros_are_tried(write: ScenarioWriter) -> None:
    special_states(write)
    assert [scenario.name for scenario in write.scenarios] == ["e0-edge-parameters-mirrored", "e0-edge-parameters-singular"]


def test_calls_that_read_what_a_method_stored_come_after_it(write: ScenarioWriter, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rows = [("torch.randn(2, 3), back=True", ""), ("", "store"), ("", "size")]
    others = [writer_of(tmp_path, request.node.name, 1 + number, call=call, method=method) for number, (call, method) in enumerate(rows)]
    call_in_order([write, *others])
    found = [(scenario.name, scenario.prior) for writer in (write, *others) for scenario in writer.scenarios]
    assert found == [("e1-after-store-eval", 2)]
