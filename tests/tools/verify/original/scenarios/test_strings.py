"""Other strings that an argument may be, found in the original's code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pytest
import torch

from migrate_agent.tools.verify.original.scenarios.strings import written

SOURCE = """
from typing import Literal

from torch import nn

TABLE = {"tanh": nn.Tanh, "silu": nn.SiLU}
POOLS = ("mean", "max")


class Unit(nn.Module):
    def __init__(self, act="tanh", pool="mean", mode: Literal["fast", "slow"] = "fast", kind="a", free="x"):
        super().__init__()
        self.kind, self.pool = kind, pool
        assert kind.lower() in ("a", "b")

    def forward(self, x):
        if self.kind == "c":
            return -x
        match self.pool:
            case "sum":
                return x.sum()
            case "mean" | "last":
                return x
        return x
"""


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[torch.nn.Module]:
    folder = tmp_path_factory.mktemp("words")
    (folder / "worded.py").write_text(SOURCE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        module = importlib.import_module("worded")
        yield module.Unit()
    sys.modules.pop("worded")


CASES = [
    ("act", "tanh", ["silu", "relu", "none"], "a table, and torch's own vocabulary"),
    ("pool", "mean", ["max", "sum", "last", "none"], "a tuple, cases of a match, and torch's own vocabulary"),
    ("mode", "fast", ["slow"], "a literal type"),
    ("kind", "a", ["b", "c"], "what it is compared with"),
    ("settings.kind", "a", ["b", "c"], "the last part of the name"),
    ("call:kind", "z", ["a", "b", "c"], "an argument of the call"),
    ("free", "x", [], "nothing stands beside it"),
    ("padding_mode", "zeros", ["reflect", "replicate", "circular", "border", "reflection"], "torch's own vocabulary"),
]


@pytest.mark.parametrize(("name", "value", "expected"), [case[:3] for case in CASES], ids=[case[3] for case in CASES])
def test_what_may_stand_in_its_place(name: str, value: str, expected: list[str], unit: torch.nn.Module) -> None:
    assert sorted(change[name] for change in written({name: value}, unit)) == sorted(expected)


def test_arguments_take_turns(unit: torch.nn.Module) -> None:
    assert written({"kind": "a", "mode": "fast"}, unit) == [{"kind": "b"}, {"mode": "slow"}, {"kind": "c"}]
