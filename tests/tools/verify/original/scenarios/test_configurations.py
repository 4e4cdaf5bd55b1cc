"""Other configurations of a function, whose arguments may be None."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.harness.common.argument_changes import Changes
from migrate_agent.tools.harness.torch_side.line_coverage import Lines
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.verify.original.scenarios import configurations

SOURCE = """
import torch

def larger(x, mask=None):
    if mask is None:
        mask = (x == 0)[:, None]
    return torch.max(x, mask)

def scaled(x, by=None):
    return x if by is None else x * by
"""


@pytest.mark.parametrize(("name", "taken"), [("larger", False), ("scaled", True)])
def test_a_number_in_place_of_a_tensor_is_no_configuration(name: str, taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"absent_{name}"
    (tmp_path / f"{module}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(changes: Changes) -> Original:
        return Original(module, name, {"init": "", "call": "torch.ones(3, 9)", "setup": "import torch", "changes": changes}, None)

    plain = make({})
    found = configurations.others(plain, make, Lines(name, tmp_path))
    assert bool(found) == taken
