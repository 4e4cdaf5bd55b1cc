"""Inputs that fit together, by what errors of torch say. The errors are torch's own: each case runs the model that gives one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing.trials.demands import demands
from migrate_agent.tools.record.guessing.trials.fewer_numbers import axis_by_axis, flatter, halved
from migrate_agent.tools.record.guessing.trials.joined_inputs import equal_parts, joined_inputs
from migrate_agent.tools.record.guessing.trials.labels_asked import labels_asked
from migrate_agent.tools.record.guessing.trials.place import Place
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, Stage
from migrate_agent.tools.record.guessing.values import Tensor, text


def embedded(noise: torch.Tensor, labels: torch.Tensor) -> Any:
    return nn.Linear(110, 4)(torch.cat((nn.Embedding(10, 10)(labels), noise), -1))


def joined(*parts: torch.Tensor) -> Any:
    return nn.Linear(74, 4)(torch.cat(parts, -1))


def repeated(image: torch.Tensor, labels: torch.Tensor) -> Any:
    labels = labels[:, :, None, None].expand(-1, -1, *image.shape[2:])
    return nn.Conv2d(8, 4, 3)(torch.cat((image, labels), 1))


def attended(x: torch.Tensor) -> Any:
    return torch.bmm(x[:1, :1], x.transpose(1, 2))


def penalty(scores: torch.Tensor) -> torch.Tensor:
    scores = (scores * 2).requires_grad_()
    return torch.autograd.grad(scores * 1, scores, torch.ones(scores.shape[0], 1))[0]


def classified(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1))


def smoothed(scores: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(scores).scatter(1, right.view(-1, 1), 1)


def packed(x: torch.Tensor, lengths: Any) -> Any:
    return nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)


def criticised(image: torch.Tensor) -> torch.Tensor:
    return torch.cat((image, image.mean().expand(image.shape[0], 1, 4, 4)), 1)


def viewed(x: torch.Tensor, question: torch.Tensor) -> torch.Tensor:
    beside = question[:, None].expand(-1, 6, -1)
    return torch.cat((x, x, beside), 2).view(2 * 6, 20)


def dilated(x: torch.Tensor) -> Any:
    return nn.Sequential(nn.Conv1d(4, 4, 2, dilation=300), nn.Conv1d(4, 4, 2, dilation=200))(x)


def grouped(places: torch.Tensor, points: torch.Tensor) -> Any:
    return nn.Conv1d(19, 4, 1)(torch.cat((places, points), -1).transpose(1, 2))


def pointed(start: torch.Tensor, end: torch.Tensor) -> Any:
    return torch.matmul(nn.Parameter(torch.ones(24)), torch.cat((start, end), 1))


def masked(x: torch.Tensor, mask: torch.Tensor) -> Any:
    return x * (1 - mask.unsqueeze(1)) if mask.dim() == 2 else x


def sampled(image: torch.Tensor, places: torch.Tensor, sizes: torch.Tensor) -> Any:
    return nn.functional.grid_sample(image, places.unsqueeze(1), align_corners=False)[:, :, 0].transpose(1, 2)[..., :2] * sizes


LABELS = Tensor((2,), "integer", 8)
CASES: tuple[tuple[Callable[..., Any], tuple[Tensor, ...], tuple[str, ...]], ...] = (
    (embedded, (Tensor((2, 110)), LABELS), ("torch.randn(2, 100)", "torch.randint(0, 8, (2,))")),
    (embedded, (Tensor((2, 64)), LABELS), ("torch.randn(2, 100)", "torch.randint(0, 8, (2,))")),
    (joined, (Tensor((2, 74)),) * 3, ("torch.randn(2, 26)", "torch.randn(2, 24)", "torch.randn(2, 24)")),
    (repeated, (Tensor((2, 8, 9, 9)), Tensor((2, 8))), ("torch.randn(2, 4, 9, 9)", "torch.randn(2, 4)")),
    (attended, (Tensor((2, 5, 4)),), ("torch.randn(1, 5, 4)",)),
    (viewed, (Tensor((2, 6, 4)), Tensor((2, 30))), ("torch.randn(2, 6, 4)", "torch.randn(2, 12)")),
    (dilated, (Tensor((2, 4, 31)),), ("torch.randn(2, 4, 512)",)),
    (classified, (Tensor((2, 5, 4)), Tensor((2, 5, 4))), ("torch.randn(2, 5, 4)", "torch.randint(0, 8, (2, 5))")),
    (smoothed, (Tensor((2, 5)), Tensor((2, 5))), ("torch.randn(4, 10)", "torch.randint(0, 10, (4,))")),
    (packed, (Tensor((2, 9, 4)), Tensor((2, 4), "integer")), ("torch.randn(2, 9, 4)", "[9, 7]")),
    (grouped, (Tensor((2, 9, 3)), Tensor((2, 9, 3))), ("torch.randn(2, 9, 3)", "torch.randn(2, 9, 16)")),
    (pointed, (Tensor((2, 16, 5)), Tensor((2, 16, 5))), ("torch.randn(2, 12, 5)", "torch.randn(2, 12, 5)")),
    (masked, (Tensor((2, 6, 40)), Tensor((6, 6))), ("torch.randn(2, 6, 40)", "torch.randn(2, 40)")),
    (sampled, (Tensor((2, 3, 8, 8)),) * 3, ("torch.randn(2, 3, 8, 8)", "torch.randn(2, 3, 2)", "torch.randn(2, 3, 2)")),
    (criticised, (Tensor((2, 3, 32, 32)),), ("torch.randn(2, 3, 4, 4)",)),
)


@pytest.mark.parametrize(("function", "inputs", "expected"), CASES)
def test_inputs_that_fit(function: Callable[..., Any], inputs: tuple[Tensor, ...], expected: tuple[str, ...]) -> None:
    """What is proposed holds the expected inputs, and the model takes them."""
    attempt = Attempt((), tuple((f"x{index}", tensor) for index, tensor in enumerate(inputs)))
    with pytest.raises((RuntimeError, ValueError)) as raised:
        function(*(eval(text(tensor)) for tensor in inputs))
    outcome = Outcome(Stage.CALL, 0, f"RuntimeError: {raised.value}", Place((), tuple(name for name, _ in attempt.call or ())))
    others = [
        *joined_inputs(attempt, outcome),
        *equal_parts(attempt, outcome),
        *labels_asked(attempt, outcome),
        *demands(attempt, outcome, {}),
    ]
    proposed = [tuple(text(value) for _, value in other.call or ()) for other in others]
    assert expected in proposed
    function(*(eval(value).clamp(max=3) if "randint(0, 8, (2, 5))" in value else eval(value) for value in expected))


def test_calls_that_take_less() -> None:
    """A layer of the last axis needs no image of 784 by 784; slow volumes have a part of their sides, but not too few."""
    large, small = Tensor((2, 3, 784, 784)), Tensor((2, 5))
    shapes = [
        [value.shape for _, value in other.call or () if isinstance(value, Tensor)]
        for other in flatter(Attempt((), (("x", large), ("y", small))))
    ]
    assert shapes == [[(2, 784), (2, 5)], [(2, 16, 784), (2, 5)]]
    assert not [*flatter(Attempt((), (("x", Tensor((2, 3, 64, 64))),)))]
    volume = Attempt((), (("x", Tensor((2, 8, 8, 16, 16))),))
    assert [text(dict(other.call or ())["x"]) for other in halved(volume)] == ["torch.randn(2, 8, 4, 8, 8)"]
    steps = Attempt((), (("x", Tensor((2, 96, 5))), ("state", Tensor((96, 5)))))
    assert [[text(value) for _, value in other.call or ()] for other in axis_by_axis(steps)] == [
        ["torch.randn(2, 12, 5)", "torch.randn(12, 5)"],
        ["torch.randn(2, 48, 5)", "torch.randn(48, 5)"],
        ["torch.randn(2, 96, 5)", "torch.randn(12, 5)"],
        ["torch.randn(2, 96, 5)", "torch.randn(48, 5)"],
        ["torch.randn(2, 12, 5)", "torch.randn(96, 5)"],
        ["torch.randn(2, 48, 5)", "torch.randn(96, 5)"],
    ]


def test_a_critic_with_one_number_for_each_sample() -> None:
    """A module in the place of one that gives back its input: it gives as much as there are gradients for."""
    with pytest.raises(RuntimeError) as raised:
        penalty(torch.randn(2, 3, 4))
    attempt = Attempt((("D", "torch.nn.Identity()"), ("n", "2")), (("x", Tensor((2, 3, 4))),))
    (proposed,) = joined_inputs(attempt, Outcome(Stage.CALL, 0, f"RuntimeError: {raised.value}"))
    assert dict(proposed.init)["D"] == "torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 1))"
    penalty(eval(str(dict(proposed.init)["D"]))(torch.randn(2, 3, 4)))


def test_nothing_where_nothing_is_joined() -> None:
    """An input that has the size itself is mended elsewhere."""
    error = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x64 and 32x4)"
    assert not list(joined_inputs(Attempt((), (("x", Tensor((2, 64))),)), Outcome(Stage.CALL, 0, error)))


def test_one_of_two_inputs_is_as_large_as_a_number_of_the_constructor() -> None:
    error = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x1588 and 794x4)"
    attempt = Attempt((("dims", "[784, 10, 64]"),), (("x", Tensor((2, 794))), ("y", Tensor((2, 794)))))
    shapes = [
        [value.shape[1] for _, value in other.call or () if isinstance(value, Tensor)]
        for other in joined_inputs(attempt, Outcome(Stage.CALL, 0, error))
    ]
    assert [784, 10] in shapes and [10, 784] in shapes
    assert all(sum(sizes) == 794 for sizes in shapes)
