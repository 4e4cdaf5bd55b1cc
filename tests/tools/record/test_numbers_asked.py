"""Numbers, shapes and kinds of arguments that errors ask for. The errors are torch's own: each case runs the code that gives one."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.repairs import lists_in_fields, smaller_models
from migrate_agent.tools.record.guessing.switches import other_branches
from migrate_agent.tools.record.guessing.trials.demands import INTEGERS, demands
from migrate_agent.tools.record.guessing.trials.numbers_asked import negative_fields, other_numbers, without_negative
from migrate_agent.tools.record.guessing.trials.other_kinds import other_kinds
from migrate_agent.tools.record.guessing.trials.place import place_of
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, Stage, Trial
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, text


@dataclass
class Sizes:
    """A configuration with a size that has to be given."""

    dim: int = 4
    vocab_size: int = -1


def _raised(function: Callable[..., Any], *arguments: Any) -> BaseException:
    with pytest.raises(Exception) as raised:
        function(*arguments)
    return raised.value


def _outcome(error: BaseException, call: tuple[str, ...] = (), stage: Stage = Stage.CALL) -> Outcome:
    place = place_of(error, nn.Module)._replace(call=call)
    return Outcome(stage, 0, f"{type(error).__name__}: {error}", place)


def full(std: float) -> Any:
    return torch.linalg.cholesky(torch.diag(torch.full((2,), std)))


def state(layers: int) -> Any:
    return nn.LSTM(4, 4, num_layers=2)(torch.randn(3, 2, 4), (torch.zeros(layers, 2, 4), torch.zeros(layers, 2, 4)))


NUMBERS: tuple[tuple[Callable[..., Any], int, Value, Value], ...] = (
    (full, 4, "4", "0.5"),
    (state, 6, "6", "2"),
    (state, 6, Fields((("cells", "6"), ("dim", "4"))), Fields((("cells", "2"), ("dim", "4")))),
)


@pytest.mark.parametrize(("function", "number", "given", "expected"), NUMBERS)
def test_numbers_of_the_constructor(function: Callable[..., Any], number: int, given: Value, expected: Value) -> None:
    attempt = Attempt((("value", given), ("act", "torch.relu")), ())
    (proposed,) = other_numbers(attempt, _outcome(_raised(function, number)))
    assert dict(proposed.init) == {"value": expected, "act": "torch.relu"}


def test_sizes_whose_defaults_are_negative() -> None:
    def make(sizes: Sizes = Sizes(), rows: int = -1, deep: int = 2) -> nn.Module:  # noqa: B008
        return nn.Embedding(rows if rows < 0 else sizes.vocab_size, sizes.dim)

    attempt = Attempt((("sizes", "Sizes(dim=4)"),), None)
    outcome = _outcome(_raised(make), stage=Stage.CONSTRUCT)
    proposed = without_negative(attempt, outcome, inspect.signature(make).parameters, lambda name: negative_fields(globals()[name]))
    assert [dict(one.init) for one in proposed] == [
        {"sizes": "Sizes(dim=4)", "rows": "64"},
        {"sizes": "Sizes(dim=4, vocab_size=64)"},
    ]


def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.binary_cross_entropy(output, target.view(-1, 6))


def rotated(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    assert table.shape == (x.shape[1], x.shape[-1] // 2)
    return x


def measured(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    assert list(x.size()) == [x.size(0), 3, 4]
    assert table.size() == (x.shape[0], -1)
    return x


def flattened(image: torch.Tensor) -> torch.Tensor:
    return functional.max_pool2d(image, 8).view(-1, 3 * 7 * 7)


SHAPES: tuple[tuple[Callable[..., Any], tuple[Tensor, ...], list[tuple[str, ...]]], ...] = (
    (loss, (Tensor((2, 6, 4)), Tensor((2, 6, 4))), [("torch.randn(8, 6)", "torch.randn(8, 6)")]),
    (rotated, (Tensor((2, 5, 8)), Tensor((2, 5, 8))), [("torch.randn(5, 4)", "torch.randn(5, 4)")]),
    (rotated, (Tensor((2, 5, 8)), Tensor((2, 9))), [("torch.randn(2, 5, 8)", "torch.randn(5, 4)")]),
    (measured, (Tensor((2, 3, 4)), Tensor((2, 9))), []),
    (flattened, (Tensor((2, 3, 32, 32)),), [("torch.randn(2, 3, 56, 56)",)]),
)


@pytest.mark.parametrize(("function", "inputs", "expected"), SHAPES)
def test_shapes_that_are_compared(function: Callable[..., Any], inputs: tuple[Tensor, ...], expected: list[tuple[str, ...]]) -> None:
    attempt = Attempt((), tuple((f"x{index}", tensor) for index, tensor in enumerate(inputs)))
    outcome = _outcome(_raised(function, *(eval(text(tensor)) for tensor in inputs)))
    proposed = [tuple(text(value) for _, value in other.call or ()) for other in demands(attempt, outcome, {})]
    assert proposed[: len(expected)] == expected


def test_arrays_of_numpy() -> None:
    attempt = Attempt((), (("state", Tensor((2, 4))), ("n", "3")))
    outcome = _outcome(_raised(torch.from_numpy, torch.ones(2)), ("state",))
    proposed = next(other_kinds(attempt, outcome, lambda name: (), ()))
    assert text(dict(proposed.call or ())["state"]) == "torch.randn(2, 4).numpy()"


INDEXED: tuple[Callable[[torch.Tensor, torch.Tensor], Any], ...] = (
    functional.nll_loss,
    functional.cross_entropy,
    functional.multi_margin_loss,
    lambda x, at: functional.embedding(at, x),
    lambda x, at: x.gather(1, at[:, None]),
    lambda x, at: x.scatter(1, at[:, None], 1.0),
    lambda x, at: x.index_select(0, at),
    lambda x, at: x.index_copy(0, at, x),
    lambda x, at: x.index_add(0, at, x),
    lambda x, at: x.take(at),
    lambda x, at: torch.take_along_dim(x, at[:, None], 1),
    lambda x, at: functional.max_unpool1d(x, x.floor(), (2,)),
    lambda x, at: x[at],
)


@pytest.mark.parametrize("function", INDEXED)
def test_errors_that_ask_for_integers(function: Callable[[torch.Tensor, torch.Tensor], Any]) -> None:
    assert INTEGERS.search(str(_raised(function, torch.rand(3, 4), torch.rand(3))))


def test_a_large_number_that_was_given_is_tried_small_first() -> None:
    attempt = Attempt((("model", "Noise(width=16)"), ("steps", "1000"), ("width", "8"), ("blocks", "[64, 64]")), ())
    options = Options(Trial(nn.Identity, sys.modules[__name__], ()), ())
    tried = [dict(other.init) for other in smaller_models(attempt, options)]
    assert tried[0] == {"model": "Noise(width=16)", "steps": "1000", "width": "8", "blocks": "[2, 2]"}
    assert tried[1] == {"model": "Noise(width=16)", "steps": "4", "width": "8", "blocks": "[64, 64]"}


class Chosen(nn.Module):
    def __init__(self, kind: str = "mean") -> None:
        super().__init__()
        assert kind in ["mean", "noise"]
        self.kind = kind

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "mean":
            raise NotImplementedError(self.kind)
        return x


def test_a_branch_that_was_not_written_is_left_for_another() -> None:
    attempt = Attempt((("kind", "'mean'"),), (("x", Tensor((2, 4))),))
    options = Options(Trial(Chosen, sys.modules[__name__], ()), ())
    outcome = _outcome(_raised(Chosen(), torch.rand(2, 4)))
    assert [dict(other.init) for other in other_branches(attempt, outcome, options)] == [{"kind": "'noise'"}]


def stages(args: Any) -> int:
    return len(args.stages) if len(args.stages) == len(args.growth) else 0


def test_lists_in_place_of_the_numbers_of_a_configuration() -> None:
    fields = Fields((("stages", "2"), ("growth", "64"), ("word", "'a'"), ("classes", "10")), "namespace")
    attempt = Attempt((("args", fields),), None)
    outcome = _outcome(_raised(stages, SimpleNamespace(stages=2, growth=64)), stage=Stage.CONSTRUCT)
    outcome = outcome._replace(place=outcome.place._replace(statement="assert len(self.stages) == len(self.growth)"))
    tried = [dict(value.items) for other in lists_in_fields(attempt, outcome) if isinstance(value := dict(other.init)["args"], Fields)]
    assert [(row["stages"], row["growth"], row["classes"]) for row in tried] == [
        ("[2, 2]", "[64, 64]", "10"),
        ("[2, 2]", "64", "10"),
        ("2", "[64, 64]", "10"),
        ("2", "64", "[10, 10]"),
    ]
