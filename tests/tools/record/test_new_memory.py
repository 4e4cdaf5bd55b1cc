"""Memory that code makes and does not set holds drawn numbers while it is recorded; what it sets stays."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch

from migrate_agent.tools.harness.torch_side.filled_memory import FilledMemory
from migrate_agent.tools.record.new_memory import FILLED, Filling, filled

UNSET = [
    "torch.FloatTensor(40, 30)",
    "torch.Tensor(torch.Size([40, 30]))",
    "torch.empty(40, 30)",
    "torch.empty((40, 30), requires_grad=True)",
    "torch.empty_like(x)",
    "x.new_empty(40, 30)",
    "x.new(40, 30)",
    "Variable(torch.FloatTensor(40, 30))",
]
SET = [
    "torch.FloatTensor([1.0, 2.0])",
    "torch.Tensor(x)",
    "x.new([3.0])",
    "torch.zeros(2, 3)",
    "len(x.new([1.0]))",
    "[x for x in (torch.ones(1),)]",
]


def run(text: str) -> Any:
    """The value of an expression as it is recorded."""
    names = {"torch": torch, "Variable": torch.autograd.Variable, "x": torch.ones(40, 30), FILLED: filled}
    return eval(compile(ast.fix_missing_locations(Filling().visit(ast.parse(text, mode="eval"))), "<text>", "eval"), names)


@pytest.mark.parametrize("text", UNSET)
def test_memory_that_is_not_set_holds_drawn_numbers(text: str) -> None:
    torch.manual_seed(0)
    value = run(text)
    assert value.shape == (40, 30) and torch.isfinite(value).all()
    assert 0.9 < value.std() < 1.1 and value.unique().numel() > 1000
    assert torch.rand(1) == torch.rand(1, generator=torch.Generator().manual_seed(0)), "the user's numbers are not drawn from"


@pytest.mark.parametrize("text", SET)
def test_what_is_set_stays(text: str) -> None:
    assert str(run(text)) == str(eval(text, {"torch": torch, "x": torch.ones(40, 30)}))


def test_integers_are_zero_and_constructors_keep_their_own_filling() -> None:
    assert not run("torch.empty(5, dtype=torch.long)").any()
    with FilledMemory(1):
        assert (run("torch.empty(5)") == 1).all()
