"""Further calls are taken where they leave no hole more in a draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.loop.exercising.exercise import Exercise, _worth_comparing
from migrate_agent.agent.loop.wiring import services
from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Example, Inventory, Limits, Observations

SOURCE = """import torch
from torch import nn


class Plain(nn.Module):
    def forward(self, x, double=False):
        if double:
            x = x * 2
        return x


class Cut(nn.Module):
    def forward(self, x, sparse=False):
        if sparse:
            x = x[: int((x > 0).sum().item())]
        return x
"""

BOTH = """import torch
from torch import nn


class Both(nn.Module):
    def forward(self, x, double=False, sparse=False):
        if double:
            x = x * 2
        if sparse:
            x = x[: int((x > 0).sum().item())]
        return x
"""

METHODS = """import torch
from torch import nn


class Shift(nn.Module):
    def forward(self, x):
        return x + 1

    def shifted(self, x):
        return x + 2


class Scale(nn.Module):
    def forward(self, x):
        return x * 2

    def scaled(self, x):
        return x * 3
"""


@pytest.mark.parametrize(("names", "reached"), [(("Plain",), ["Plain"]), (("Cut",), []), (("Plain", "Cut"), ["Plain"])])
def test_a_call_that_leaves_a_hole_is_not_taken(names: tuple[str, ...], reached: list[str], tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "model.py").write_text(SOURCE)
    inventory = scan(tmp_path / "repository")
    units = [inventory.unit(f"model.py:{name}") for name in names]
    with ProcessSandbox() as sandbox:
        exercise = Exercise(services(print), Config(), inventory, sandbox, tmp_path / "work")
        given = record(inventory, [Example(unit.id, "", "torch.randn(4, 3)") for unit in units], sandbox, tmp_path / "given", Limits())
        grown = exercise.add_further(units, given)
    assert [example.unit for example in grown.examples if "True" in example.call] == [f"model.py:{name}" for name in reached]


def test_of_few_calls_those_that_leave_no_hole_are_taken(tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "model.py").write_text(BOTH)
    inventory = scan(tmp_path / "repository")
    unit = inventory.unit("model.py:Both")
    with ProcessSandbox() as sandbox:
        exercise = Exercise(services(print), Config(), inventory, sandbox, tmp_path / "work")
        one = record(inventory, [Example(unit.id, "", "torch.randn(4, 3)")], sandbox, tmp_path / "one", Limits())
        grown = exercise.add_further([unit], one)
    assert [example.call for example in grown.examples] == ["torch.randn(4, 3)", "torch.randn(4, 3), double=True"]


def test_a_draft_without_holes_is_compared_with_no_other(tmp_path: Path) -> None:
    """Each draft costs minutes where a repository adopts a large package."""
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "model.py").write_text(METHODS)
    inventory = scan(tmp_path / "repository")
    chosen = [inventory.unit(f"model.py:{name}") for name in ("Shift", "Scale")]
    drafts = []

    def composed(inventory: Inventory, observations: Observations, units: Sequence[str], *rest: Any, **named: Any) -> Draft:
        drafts.append(tuple(units))
        return compose(inventory, observations, units, *rest, **named)

    with ProcessSandbox() as sandbox:
        exercise = Exercise(replace(services(print), compose=cast(Any, composed)), Config(), inventory, sandbox, tmp_path / "work")
        given = record(inventory, [Example(unit.id, "", "torch.randn(4, 3)") for unit in chosen], sandbox, tmp_path / "given", Limits())
        grown = exercise.add_methods(chosen, given)
    assert {(example.unit, example.method) for example in grown.examples if example.method} == {
        ("model.py:Shift", "shifted"),
        ("model.py:Scale", "scaled"),
    }
    assert sorted(map(sorted, drafts)) == [["model.py:Scale", "model.py:Shift"]]


def test_recorded_calls_that_reach_nothing_are_compared_up_to_a_number() -> None:
    """What the user wrote stays, and so do methods."""
    rows = [Example("m.py:M", "", f"x + {number}", origin="recording") for number in range(6)]
    own = [Example("m.py:M", "", "y"), Example("m.py:M", "", "", origin="recording", method="size")]
    reaching = {("m.py:M", "", "x + 5", "")}
    assert [example.call for example in _worth_comparing([*rows, *own], reaching)] == ["x + 0", "x + 1", "x + 2", "x + 3", "x + 5", "y", ""]
