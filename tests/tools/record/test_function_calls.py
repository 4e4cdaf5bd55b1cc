"""Recorded calls of functions: as texts and tensors, with modules and functions held by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from migrate_agent.tools.record.capture import Capture
from migrate_agent.tools.record.function_calls import FunctionCapture, is_held


def double(x: Any, by: float = 2.0, fn: Any = None, *, note: str = "") -> Any:
    return (fn(x) if fn is not None else x) * by


@pytest.fixture
def watched() -> tuple[Capture, FunctionCapture, Any]:
    capture = Capture(lambda cls: "", lambda module: "")
    functions = FunctionCapture(capture)
    return capture, functions, functions.observe("m.py", "double")(double)


def texts(capture: Capture) -> list[tuple[str, str]]:
    return [(sample.init, sample.call) for sample in capture.samples()]


def test_a_call_is_kept(watched: tuple[Capture, FunctionCapture, Any]) -> None:
    capture, _, function = watched
    assert torch.equal(function(torch.ones(2), 3.0), torch.full((2,), 3.0))
    assert texts(capture) == [("", '_tensors["call0"], 3.0')]


def test_what_no_call_carries_over_is_held(watched: tuple[Capture, FunctionCapture, Any]) -> None:
    capture, _, function = watched
    function(torch.ones(2), fn=torch.relu, note="a")
    assert texts(capture) == [("fn=torch.relu", "x=_tensors[\"call0\"], note='a'")]


def test_equal_calls_are_kept_once_and_others_beside_them(watched: tuple[Capture, FunctionCapture, Any]) -> None:
    capture, _, function = watched
    for note in ("a", "a", "b"):
        function(torch.ones(2), note=note)
    assert [call for _, call in texts(capture)] == ["_tensors[\"call0\"], note='a'", "_tensors[\"call0\"], note='b'"]


def test_the_example_of_a_function_is_not_recorded_again(watched: tuple[Capture, FunctionCapture, Any]) -> None:
    capture, functions, function = watched
    with functions.example_of("m.py:double"):
        function(torch.ones(2))
    assert texts(capture) == []


def test_a_call_that_cannot_be_written_down_is_a_reason(watched: tuple[Capture, FunctionCapture, Any]) -> None:
    capture, _, function = watched
    function(torch.ones(2), fn=lambda x: x)
    assert texts(capture) == []
    assert "local function" in capture.reasons()["m.py:double"]


def test_a_failing_call_is_not_kept(watched: tuple[Capture, FunctionCapture, Any]) -> None:
    capture, _, function = watched
    with pytest.raises(TypeError):
        function(torch.ones(2), "a", note="b")
    assert texts(capture) == []


@pytest.mark.parametrize(
    ("value", "held"), [(torch.ones(1), False), (torch.float32, False), ([1, {"a": None}], False), (abs, True), ([torch.nn.ReLU()], True)]
)
def test_which_arguments_are_held(value: Any, held: bool) -> None:
    assert is_held(value) == held
