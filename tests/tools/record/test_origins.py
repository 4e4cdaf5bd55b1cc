"""Which arguments a failed operation got its tensors from, and what it asks of them."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

from migrate_agent.tools.record.guessing.trials.demands import demands
from migrate_agent.tools.record.guessing.trials.trial import Arguments, Attempt, Outcome, Stage, Trial
from migrate_agent.tools.record.guessing.values import Sequence, text
from migrate_agent.tools.record.guessing.values import Tensor as Drawn

ROWS = Drawn((2, 5, 4))
INTEGERS = Drawn((2, 5), "integer")

IMAGES = Drawn((2, 8, 32, 32))


class Marked(nn.Module):
    """Adds tables of marks to two inputs: the part is called twice, so that its places are the same."""

    def __init__(self) -> None:
        super().__init__()
        self.hours, self.days = nn.Embedding(24, 4), nn.Embedding(7, 4)

    def marks(self, x: Tensor) -> Tensor:
        x = x.long()
        both: Tensor = self.hours(x[..., 0]) + self.days(x[..., 1])
        return both

    def forward(self, x: Tensor, marks: Tensor, y: Tensor, others: Tensor) -> Tensor:
        return x + self.marks(marks) + y + self.marks(others)


class Columns(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x[:, 0] + y.transpose(1, 2)[:, 3]


class Loss(nn.Module):
    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(scores, labels)


class Selected(nn.Module):
    def forward(self, rows: Tensor, index: Tensor) -> Tensor:
        return rows.index_select(0, index)


class Paired(nn.Module):
    """A graph as one argument: rows, and the numbers of the rows that its edges join."""

    def forward(self, graph: tuple[Tensor, Tensor]) -> Tensor:
        rows, edges = graph
        return rows.index_select(0, edges[0])


class Frequencies(nn.Module):
    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        steps: Tensor = torch.linspace(0.0, 1.0, steps=count)  # type: ignore[call-overload]
        return x[..., None] * steps


class Counted(nn.Module):
    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        return x.sum() * count(x)  # type: ignore[operator, no-any-return]


class Camera(nn.Module):
    def forward(self, x: Tensor, k: Tensor) -> Tensor:
        return x / k[0][2]


class Folded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(16, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        with torch.no_grad():
            self.scale.copy_(x.view(batch, channels * 4, height // 2, width // 2).std((0, 2, 3), keepdim=True)[0])
        return self.scale * x.view(batch, channels * 4, height // 2, width // 2)


class Conditioned(nn.Module):
    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        c = c.view(c.size(0), c.size(1), 1, 1).repeat(1, 1, x.size(2), x.size(3))
        return torch.cat([x, c], dim=1)


class Labelled(nn.Module):
    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        n, h, w, _ = scores.shape
        return scores[target.view(n, h, w, 1).expand_as(scores) >= 0]


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shifts = nn.Embedding(10, 3)

    def forward(self, images: Tensor, label: Tensor) -> Tensor:
        shifted: Tensor = images + self.shifts(label)[:, :, None, None]
        return shifted


class Stepped(nn.Module):
    def forward(self, x: Tensor, start: int) -> Tensor:
        return x[:, start or 0]


class Written(nn.Module):
    def forward(self, x: Tensor, y: list[Tensor]) -> Tensor:
        both = torch.zeros(2, 5, 8)
        both[..., :4] = y[1]
        return x @ both


def trial(cls: type) -> Trial:
    return Trial(cls, sys.modules[cls.__module__], [__file__])


def run(cls: type, call: Arguments) -> tuple[Attempt, Outcome]:
    attempt = Attempt((), call)
    outcome = trial(cls).run(attempt)
    assert outcome.stage is Stage.CALL, outcome
    return attempt, outcome


@pytest.mark.parametrize(
    ("cls", "call", "name", "origins"),
    [
        (Marked, (("x", ROWS), ("marks", ROWS), ("y", ROWS), ("others", ROWS)), "embedding", ("marks",)),
        (Columns, (("x", ROWS), ("y", Drawn((2, 5, 2)))), "__getitem__", ("y",)),
        (Loss, (("scores", Drawn((2, 3))), ("labels", Drawn((2,), "integer", 90))), "cross_entropy", ("scores", "labels")),
        (Written, (("x", ROWS), ("y", Sequence((ROWS, ROWS)))), "matmul", ("x", "y")),
        (Counted, (("x", ROWS), ("count", "8")), "", ()),
    ],
)
def test_the_operation_that_failed(cls: type, call: Arguments, name: str, origins: tuple[str, ...]) -> None:
    _, outcome = run(cls, call)
    assert (outcome.operation.name, outcome.operation.origins) == (name, origins)
    assert outcome.place.call[: len(origins)] == origins


@pytest.mark.parametrize(
    ("cls", "call", "expected"),
    [
        (Marked, (("x", ROWS), ("marks", ROWS), ("y", ROWS), ("others", ROWS)), ("marks", "torch.randint(0, 24, (2, 5, 4))")),
        (Columns, (("x", ROWS), ("y", Drawn((2, 5, 2)))), ("y", "torch.randn(2, 5, 4)")),
        (Loss, (("scores", Drawn((2, 3))), ("labels", Drawn((2,), "integer", 90))), ("labels", "torch.randint(0, 3, (2,))")),
        (Selected, (("rows", Drawn((6, 3))), ("index", Drawn((4,)))), ("index", "torch.randint(0, 3, (4,))")),
        (
            Paired,
            (("graph", Sequence((Drawn((6, 3)), Drawn((2, 4))), "()")),),
            ("graph", "(torch.randn(6, 3), torch.randint(0, 3, (2, 4)))"),
        ),
        (Shifted, (("images", Drawn((2, 3, 8, 8))), ("label", INTEGERS)), ("label", "torch.randint(0, 8, (2,))")),
        (Stepped, (("x", ROWS), ("start", ROWS)), ("start", "4")),
        (Frequencies, (("x", ROWS), ("count", ROWS)), ("count", "4")),
        (Paired, (("graph", Drawn((2, 6, 3))),), ("graph", "torch.randint(0, 3, (2, 6, 3))")),
        (Folded, (("x", Drawn((2, 8, 32, 32))),), ("x", "torch.randn(2, 4, 32, 32)")),
        (Conditioned, (("x", IMAGES), ("c", IMAGES)), ("c", "torch.randn(2, 8)")),
        (Conditioned, (("x", IMAGES), ("c", Drawn((32, 5)))), ("c", "torch.randn(2, 5)")),
        (Labelled, (("scores", Drawn((2, 4, 5, 3))), ("target", Drawn((2, 4, 5, 3)))), ("target", "torch.randn(2, 4, 5)")),
        (Camera, (("x", ROWS), ("k", "8")), ("k", "torch.randn(4, 4)")),
        (Written, (("x", ROWS), ("y", Sequence((ROWS, ROWS)))), None),
    ],
)
def test_what_the_operation_asks_for(cls: type, call: Arguments, expected: tuple[str, str] | None) -> None:
    attempt, outcome = run(cls, call)
    first = next(demands(attempt, outcome, {}), None)
    assert (first is None) == (expected is None)
    if first is not None and expected is not None:
        name, source = expected
        assert text(dict(first.call or ())[name]) == source
        assert [value for other, value in first.call or () if other != name] == [value for other, value in call if other != name]


def test_a_part_that_is_called_twice_counts_as_progress() -> None:
    first = run(Marked, (("x", ROWS), ("marks", ROWS), ("y", ROWS), ("others", ROWS)))[1]
    fits = Drawn((2, 5, 4), "integer", 7)
    second = run(Marked, (("x", ROWS), ("marks", fits), ("y", ROWS), ("others", ROWS)))[1]
    assert second.progress > first.progress
    assert second.operation.origins == ("others",)


def test_integers_keep_within_the_smallest_table() -> None:
    marks = Drawn((2, 5, 4), "integer", 24)
    attempt, outcome = run(Marked, (("x", ROWS), ("marks", marks), ("y", ROWS), ("others", ROWS)))
    assert text(dict(next(demands(attempt, outcome, {})).call or ())["marks"]) == "torch.randint(0, 7, (2, 5, 4))"


def test_parameters_keep_no_origins() -> None:
    module = ModuleType("kept")
    kept = trial(Marked)
    kept.module = module
    kept.run(Attempt((), (("x", ROWS), ("marks", INTEGERS), ("y", ROWS), ("others", ROWS))))
    assert all(not vars(parameter) for parameter in kept.instance.parameters())


def test_a_tensor_that_is_unpacked_becomes_a_tuple() -> None:
    attempt, outcome = run(Paired, (("graph", Drawn((2, 6, 3))),))
    calls = [text(dict(mended.call or ())["graph"]) for mended in demands(attempt, outcome, {})]
    assert "(torch.randn(6, 3), torch.randint(0, 3, (6, 3)))" in calls
