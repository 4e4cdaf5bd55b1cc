"""Labels of losses inside a call: of the shape that the scores have without their classes."""

import sys
from pathlib import Path

import pytest
import torch

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.search import Search
from migrate_agent.tools.record.guessing.trials.trial import Trial


class OfTexts(torch.nn.Module):
    """Scores of three classes for each text."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(50, 8)
        self.fc = torch.nn.Linear(8, 3)

    def forward(self, text: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.fc(self.table(text).mean(1)), label)


class OfWords(OfTexts):
    """Scores of three classes for each word."""

    def forward(self, text: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.nll_loss(self.fc(self.table(text)).log_softmax(-1).transpose(1, 2), label)


@pytest.mark.parametrize("cls", [OfTexts, OfWords])
def test_labels_fit_the_scores(cls: type[torch.nn.Module]) -> None:
    trial = Trial(cls, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, []), 20.0).run()
    assert best is not None and not best.outcome.error
    text, label = trial.example(best.attempt).call.split("), torch.")
    assert label.startswith("randint(0, 3, ") and text.startswith("torch.randint(0, 50, ")


class OfSeveral(torch.nn.CrossEntropyLoss):
    """A loss of a list of predictions and one target, handed over as they come."""

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        predictions, target = tuple(inputs)
        return torch.stack([super(OfSeveral, self).forward(one, target) for one in list(predictions)]).sum()


def test_the_last_of_several_is_the_target_of_a_list() -> None:
    trial = Trial(OfSeveral, sys.modules[__name__], [str(Path(__file__).parent)])
    best = Search(trial, Options(trial, []), 20.0).run()
    assert best is not None and not best.outcome.error
    assert trial.example(best.attempt).call.startswith("[torch.randn(") and "torch.randint(" in trial.example(best.attempt).call
