"""What a guess is made of: the words that code compares a parameter with, and what errors say of shapes."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from typing import Any, Literal

import pytest

from migrate_agent.tools.record.adapt import NOT_FINITE, adapt_input
from migrate_agent.tools.record.choices import choices

TABLE = {"gln": 1, "cln": 2}


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def compared(kind: Any) -> int:
    if kind.lower() == "lstm":
        return 1
    return 2 if kind in ("gru", "rnn") else 3


def looked_up(kind: str) -> int:
    return TABLE[kind] + {"a": 1}.get(kind, 0)


def passed_on(kind: str, other: int) -> int:
    return compared(kind) + other


def annotated(kind: Literal["same", "valid"], colour: Colour) -> None: ...


class Held:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def ask(self) -> bool:
        return self.kind != "tanh"


CHOICES: list[tuple[Callable[..., Any], str, tuple[str, ...]]] = [
    (compared, "kind", ("'lstm'", "'gru'", "'rnn'")),
    (looked_up, "kind", ("'gln'", "'cln'", "'a'")),
    (passed_on, "kind", ("'lstm'", "'gru'", "'rnn'")),
    (passed_on, "other", ()),
    (annotated, "kind", ("'same'", "'valid'")),
    (Held, "kind", ("'tanh'",)),
]


@pytest.mark.parametrize(("function", "name", "expected"), CHOICES)
def test_the_words_that_a_parameter_may_be(function: Callable[..., Any], name: str, expected: tuple[str, ...]) -> None:
    found = choices(function, inspect.signature(function).parameters[name])
    assert set(found) == set(expected)


def test_members_of_an_enum() -> None:
    parameter = inspect.Parameter("colour", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Colour)
    assert choices(annotated, parameter) == ("Colour.RED", "Colour.BLUE")


MAIN = "torch.randn(2, 16, 64)"
ADAPTED = [
    (MAIN, "Given groups=1, weight of size [8, 4, 3], expected input[2, 16, 64] to have 4 channels, but got 16", "torch.randn(2, 4, 64)"),
    (MAIN, "weight of size [8, 4, 3, 3], expected input[1, 2, 16, 64] to have 4 channels, but got 2 channels", "torch.randn(2, 4, 8, 64)"),
    (MAIN, "mat1 and mat2 shapes cannot be multiplied (32x64 and 24x8)", "torch.randn(2, 16, 24)"),
    (MAIN, "mat1 and mat2 shapes cannot be multiplied (128x16 and 24x8)", "torch.randn(2, 24, 64)"),
    (MAIN, "Given normalized_shape=[4, 24], expected input with shape [*, 4, 24], but got", "torch.randn(2, 16, 24)"),
    (MAIN, "input.size(-1) must be equal to input_size. Expected 24, got 64", "torch.randn(2, 16, 24)"),
    (MAIN, "running_mean should contain 16 elements not 24", "torch.randn(2, 24, 64)"),
    (MAIN, "not enough values to unpack (expected 5, got 3)", "torch.randn(2, 16, 8, 8, 64)"),
    (MAIN, "too many values to unpack (expected 2)", "torch.randn(2, 64)"),
    (MAIN, "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [2, 16, 64]", "torch.randn(2, 16, 8, 64)"),
    (MAIN, "too many indices for tensor of dimension 3", "torch.randn(2, 16, 8, 64)"),
    (MAIN, NOT_FINITE, "torch.rand(2, 16, 64)"),
    ("torch.rand(2, 16)", NOT_FINITE, ""),
    ("torch.randint(0, 9, (2, 16))", "not enough values to unpack (expected 3, got 2)", "torch.randint(0, 9, (2, 16, 8))"),
    (MAIN, "mat1 and mat2 shapes cannot be multiplied (7x7 and 64x8)", ""),
    (MAIN, "KeyError: 3", ""),
]


@pytest.mark.parametrize(("text", "error", "expected"), ADAPTED)
def test_errors_say_which_shape_is_wanted(text: str, error: str, expected: str) -> None:
    assert adapt_input(text, error) == expected
