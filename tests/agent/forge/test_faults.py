"""Answers that are no success, as one line; what is tried again, and for how long."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from migrate_agent.agent.forge.base import ForgeError
from migrate_agent.agent.forge.faults import Answer, Caller


def failing(answer: Answer, times: int) -> Callable[[], str]:
    """A call that fails so many times."""
    left = [answer] * times

    def call() -> str:
        if left:
            raise left.pop()
        return "done"

    return call


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(401, "Bad credentials"), "401 while looking: the token is not accepted"),
        (Answer(403, "Resource not accessible by personal access token"), "lacks a scope"),
        (Answer(404), "hidden from this token"),
        (Answer(409, "Conflict"), "run the command again"),
        (Answer(422, "Validation\nFailed"), r"refuses what was sent \(Validation Failed\)"),
        (Answer(418), "418 while looking: the forge refuses this"),
        (Answer(502), r"the server failed \(502\)"),
        (Answer(0, "the connection was refused or lost"), "no answer while looking .* goes on from there"),
        (Answer(403, "API rate limit exceeded", {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4600"}), "again in 3601 s"),
        (Answer(429, "", {"Retry-After": "300"}), "again in 300 s"),
    ],
)
def test_each_is_one_line(answer: Answer, says: str) -> None:
    with pytest.raises(ForgeError, match=f"^host: .*{says}|{says}") as caught:
        Caller("host", wait=lambda seconds: None, now=lambda: 1000.0).read("looking", failing(answer, 9))
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("answer", "times", "waited"),
    [
        (Answer(502), 2, [1.0, 2.0]),
        (Answer(0, "lost"), 3, [1.0, 2.0, 4.0]),
        (Answer(403, "You have exceeded a secondary rate limit", {"Retry-After": "7"}), 1, [7.0]),
        (Answer(429, "", {"ratelimit-reset": "1020"}), 1, [21.0]),
        (Answer(403, "secondary rate limit"), 1, [60.0]),
    ],
)
def test_reads_are_tried_again(answer: Answer, times: int, waited: list[float]) -> None:
    waits: list[float] = []
    assert Caller("host", waits.append, lambda: 1000.0).read("looking", failing(answer, times)) == "done"
    assert waits == waited


@pytest.mark.parametrize(("answer", "again"), [(Answer(502), False), (Answer(0), False), (Answer(429, "", {"retry-after": "1"}), True)])
def test_writes_are_tried_again_only_where_they_were_not_done(answer: Answer, again: bool) -> None:
    waits: list[float] = []
    caller = Caller("host", waits.append, lambda: 0.0)
    if again:
        assert caller.write("opening", failing(answer, 1)) == "done"
    else:
        with pytest.raises(ForgeError):
            caller.write("opening", failing(answer, 1))
    assert bool(waits) == again


def test_a_long_limit_is_told_and_not_waited_for() -> None:
    waits: list[float] = []
    with pytest.raises(ForgeError, match="rate limit reached"):
        Caller("host", waits.append, lambda: 0.0).read("looking", failing(Answer(429, "", {"Retry-After": "3600"}), 1))
    assert waits == []
