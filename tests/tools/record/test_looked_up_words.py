"""Words that code looks up in a table, and axes of which code takes a part: what the failed attempt says of the next one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing.objects.looked_up_words import table_with
from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.sizes.sliced_sizes import of_parts
from migrate_agent.tools.record.guessing.trials.origins import Operand, Operation
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, Stage, Trial
from migrate_agent.tools.record.guessing.values import Tensor

START, STOP = "<start>", "<stop>"


class Tagger(nn.Module):
    """Reads two words of a table in its constructor, and a third one in its call."""

    def __init__(self, tag_to_ix: Any, dim: int) -> None:
        super().__init__()
        self.tag_to_ix = tag_to_ix
        self.transitions = nn.Parameter(torch.zeros(len(tag_to_ix), len(tag_to_ix)))
        self.transitions.data[tag_to_ix[START], :] = -10000
        self.transitions.data[:, tag_to_ix[STOP]] = -10000
        self.out = nn.Linear(dim, len(tag_to_ix))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.out(x) + self.transitions[self.tag_to_ix["other"]]
        return scores


class Overlap(nn.Module):
    """Takes four columns of boxes, two and two."""

    def forward(self, box_a: torch.Tensor, box_b: torch.Tensor) -> torch.Tensor:
        a, b = box_a.size(0), box_b.size(0)
        high = torch.min(box_a[:, 2:].unsqueeze(1).expand(a, b, 2), box_b[:, 2:].unsqueeze(0).expand(a, b, 2))
        return high - box_a[:, :2].unsqueeze(1)


def _text_of(cls: type[nn.Module], folder: Path) -> tuple[str, str]:
    trial = Trial(cls, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, [], folder), 20.0).run()
    assert best is not None and not best.outcome.error
    example = trial.example(best.attempt)
    return example.init, example.call


def test_a_table_has_the_words_that_are_looked_up(tmp_path: Path) -> None:
    init, _ = _text_of(Tagger, tmp_path)
    assert init.startswith("{'a': 0, 'b': 1, 'c': 2, '<start>': 3, '<stop>': 4, 'other': 5}")


def test_boxes_have_what_is_left_out_and_what_is_taken(tmp_path: Path) -> None:
    _, call = _text_of(Overlap, tmp_path)
    assert call == "torch.randn(2, 4), torch.randn(2, 4)"


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("{'a': 0}", "{'a': 0, 'x': 1}"),
        ("[64, 64]", "{'a': 0, 'b': 1, 'c': 2, 'x': 3}"),
        ("64", "{'a': 0, 'b': 1, 'c': 2, 'x': 3}"),
        ("{'x': 0}", None),
        ("Config()", None),
    ],
)
def test_a_word_is_added(text: str, table: str | None) -> None:
    assert table_with(text, "'x'") == table


EXPANDED = "RuntimeError: The expanded size of the tensor (2) must match the existing size ({}) at non-singleton dimension 2."


@pytest.mark.parametrize(("size", "last"), [(62, [4]), (64, []), (70, [])])
def test_an_axis_is_as_long_as_its_parts(size: int, last: list[int]) -> None:
    attempt = Attempt((), (("x", Tensor((3, 64))), ("y", Tensor((5, 8)))))
    operation = Operation("expand", (Operand((3, 1, size), ("x",)),))
    outcome = Outcome(Stage.CALL, error=EXPANDED.format(size), operation=operation)
    lengths: Callable[[Attempt], list[int]] = lambda one: [value.shape[-1] for _, value in one.call or () if isinstance(value, Tensor)]  # noqa: E731
    assert [lengths(one) for one in of_parts(attempt, outcome)] == [[length, 8] for length in last]
