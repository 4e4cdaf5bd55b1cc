"""Draws in branches, which a run takes or not."""

from __future__ import annotations

import pytest

from migrate_agent.tools.harness.common.random_streams import Stream


@pytest.mark.parametrize(
    ("executed", "kinds"),
    [
        ((0, 1, 2, 3), ["uniform", "normal", "bernoulli", "uniform"]),
        ((0, 2, 3), ["uniform", "bernoulli", "uniform"]),
        ((0, 1, 3), ["uniform", "normal", "uniform"]),
        ((0, 3), ["uniform", "uniform"]),
    ],
)
def test_draws_of_branches_that_did_not_run_are_left_out(executed: tuple[int, ...], kinds: list[str]) -> None:
    stream = Stream(0, optional={1, 2})
    stream.draw("uniform", ())
    stream.draw("normal", (3,))
    stream.mask((3,), 0.9)
    stream.draw("uniform", ())
    assert [row[0] for row in stream.executed(executed)] == kinds


def test_draws_are_not_counted_alike_after_one_of_their_kind_that_did_not_run() -> None:
    stream = Stream(0, optional={0})
    stream.draw("normal", (2,))
    stream.draw("normal", (3,))
    assert stream.executed({1}) == stream.log()
