"""Of many further calls, those are chosen that leave no hole, with few drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from migrate_agent.agent.loop.exercising.growth import Growth
from migrate_agent.tools.types import Draft, Example, Hole, Observations, Observed, Recording, Span

SOURCE = "net.py"
INTEGER = Observed(("int",))


def lines(*numbers: int) -> Observations:
    """Something observed on each of these lines."""
    return {SOURCE: {Span(number, 4, number, 9): INTEGER for number in numbers}}


CASES: Mapping[str, tuple[Sequence[Sequence[int]], Sequence[int], Sequence[int], int]] = {
    # lines of the calls; lines that are a hole once they are reached; calls that are taken; drafts at most
    "none leaves a hole": ([[1, 2], [1, 3]], [], [0, 1], 2),
    "one reaches a hole": ([[1, 2], [1, 3], [1, 4]], [3], [0, 2], 3),
    "many reach one": ([[1, number % 8 + 2] for number in range(64)], [3], [n for n in range(64) if n % 8 != 1], 3),
    "two reach two": ([[1, 2], [1, 3], [1, 4], [1, 5]], [3, 5], [0, 2], 3),
    "all reach one": ([[1, 3], [3]], [3], [], 2),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_that_reach_holes_are_left_out(name: str) -> None:
    reached, holes, expected, most = CASES[name]
    examples = [Example("net.py:Net", "", f"x, {number}") for number in range(len(reached))]

    def draft(examples: Sequence[Example], recording: Recording) -> Draft:
        seen = {span.line for span in recording.observations.get(SOURCE, {})}
        return Draft({}, tuple(Hole(SOURCE, Span(line, 0, line, 20), "unknown-op", "", "") for line in holes if line in seen))

    growth = Growth(Recording(observations=lines(1)), draft)
    assert growth.chosen(examples, [lines(*one) for one in reached]) == [examples[number] for number in expected]
    assert growth.drafts <= most


def test_of_calls_that_reach_a_line_which_was_reached_before_the_others_are_added_again() -> None:
    """A hole that one kind of value leaves, on a line that all calls run."""
    examples = [Example("net.py:Net", "", f"x, {number}") for number in range(16)]
    span = Span(1, 4, 1, 9)
    apart: list[Observations | None] = [{SOURCE: {span: Observed(("str",) if number == 5 else ("int",))}} for number in range(16)]
    apart[7] = None

    def draft(examples: Sequence[Example], recording: Recording) -> Draft | None:
        kinds = recording.observations[SOURCE][span].kinds
        return Draft({}, (Hole(SOURCE, Span(1, 0, 1, 20), "unknown-op", "", ""),) if "str" in kinds else ())

    growth = Growth(Recording(observations=lines(1)), draft)
    assert growth.chosen(examples, apart) == [example for number, example in enumerate(examples) if number not in (5, 7)]
    assert growth.drafts <= 12


def test_without_a_draft_no_call_is_taken() -> None:
    growth = Growth(Recording(observations=lines(1)), lambda examples, recording: None)
    assert growth.chosen([Example("net.py:Net", "", "x")], [lines(1, 2)]) == []
