"""Constants of the user's files while the original runs in float64."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from migrate_agent.tools.harness.torch_side.precision import exact


def test_constants_of_own_files_are_wide_and_put_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("own_constants")
    module.__file__ = str(tmp_path / "own_constants.py")
    rows: dict[str, Any] = {
        "PI": torch.tensor([math.pi]),
        "TABLE": {"mean": [torch.tensor([0.1]), (torch.tensor([0.1j], dtype=torch.complex64),)]},
        "WEIGHT": torch.nn.Parameter(torch.ones(2)),
        "IDS": torch.arange(2),
        "NAMES": ["a"],
    }
    vars(module).update(rows)
    monkeypatch.setitem(sys.modules, "own_constants", module)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with exact():
        names = vars(module)
        logarithm = torch.log(2.0 * names["PI"])
        mean, (imaginary,) = names["TABLE"]["mean"]
        assert (mean.dtype, imaginary.dtype) == (torch.float64, torch.complex128)
        assert names["WEIGHT"] is rows["WEIGHT"] and names["IDS"] is rows["IDS"] and names["NAMES"] is rows["NAMES"]
        names["IDS"] = torch.arange(3)
    # The number is that of float32, and what is computed of it is exact.
    assert float(logarithm) == math.log(2.0 * float(rows["PI"]))
    assert names["PI"] is rows["PI"] and names["TABLE"] is rows["TABLE"] and names["IDS"].tolist() == [0, 1, 2]
