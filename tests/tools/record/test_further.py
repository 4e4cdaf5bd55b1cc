"""Further calls: what is proposed, and which of it is kept."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.record.further import further_examples
from migrate_agent.tools.record.guessing.further import Call, guesses, others
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example, Limits, Recording


def forward(x: object, mask: object = None, scale: object = 2.0, *, causal: bool = False) -> None: ...


PARAMETERS = list(inspect.signature(forward).parameters.values())


def test_optional_arguments_are_left_out_turned_and_given() -> None:
    call = Call.of("torch.ones(2, 3), scale=0.5")
    assert call is not None
    rows = list(others(call, PARAMETERS, [2, 3]))
    assert rows[0] == {"x": "torch.ones(2, 3)"}
    assert rows[1] == {"x": "torch.ones(2, 3)", "scale": "0.5", "causal": "True"}
    assert all(row["mask"].endswith("dtype=torch.bool)") for row in rows[2:])


def test_a_spread_call_is_left_alone() -> None:
    assert Call.of("*parts, x=1") is None
    assert Call.of("x, **more") is None


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("key_padding_mask", "torch.ones((2, 5), dtype=torch.bool)"),
        ("timesteps", "torch.randint(0, 2, (2,))"),
        ("context", "torch.randn((2, 5, 8))"),
    ],
)
def test_values_follow_names_and_the_first_tensor(name: str, first: str) -> None:
    assert guesses(name, [2, 5, 8])[0] == first


def test_without_a_tensor_there_are_numbers() -> None:
    assert guesses("context", None) == ["1", "0.5", "True"]


MODEL = """
import torch
from torch import nn
class M(nn.Module):
    def forward(self, x, mask=None, unused=None):
        if mask is not None:
            x = x.masked_fill(~mask[:, :, None], 0.0)
        return x * 2
"""


def test_a_call_that_reaches_more_is_found(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    inventory = scan(tmp_path)
    unit = inventory.unit("model.py:M")
    examples = [Example(unit.id, "", "torch.randn(2, 3, 4)")]
    with ProcessSandbox() as sandbox:
        found = further_examples(inventory, [(unit, examples)], Recording(), sandbox, Limits())
    assert [example.call for example in found] == ["torch.randn(2, 3, 4), mask=torch.ones((2, 3), dtype=torch.bool)"]
