"""What a constructor draws with the generators of Python and numpy is equal on both sides, and each time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from flax import nnx

from migrate_agent.tools.harness.common.example_text import construct, import_module, in_mode, load_unit, make_namespace
from migrate_agent.tools.harness.jax_side.module import Candidate
from migrate_agent.tools.types import Example

SOURCE = """import random
import numpy as np
{imports}

class Wired({base}):
    def __init__(self, first):
        super().__init__()
        self.first = first
        self.picks = tuple(random.randrange(1000) for _ in range(3)) + tuple(np.random.permutation(9).tolist())
"""
EXAMPLE = Example(unit="", init="drawn", call="", setup="drawn = random.random()")


def test_equal_on_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wired_torch.py").write_text(SOURCE.format(imports="from torch import nn", base="nn.Module"))
    (tmp_path / "wired_jax.py").write_text(SOURCE.format(imports="from flax import nnx", base="nnx.Module"))
    monkeypatch.syspath_prepend(str(tmp_path))
    namespace = make_namespace(import_module("wired_torch"), EXAMPLE)
    built = [construct(load_unit("wired_torch", "Wired"), EXAMPLE, namespace) for _ in range(2)]
    candidate = Candidate("wired_jax", "Wired", {"init": EXAMPLE.init, "setup": EXAMPLE.setup}, None, exact=False)
    built += [candidate.model, candidate.fresh(nnx.Rngs(1))]
    assert len({(one.first, one.picks) for one in built}) == 1
    for name in ("wired_torch", "wired_jax"):
        sys.modules.pop(name)


def test_a_train_of_its_own_may_give_back_nothing() -> None:
    class Frozen(torch.nn.Dropout):
        def train(self, mode: bool = True) -> Any:
            super().train(mode)

    for training in (True, False):
        assert in_mode(Frozen(), training=training).training == training
