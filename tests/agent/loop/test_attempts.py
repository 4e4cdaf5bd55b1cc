"""Which of several attempts speaks for a unit."""

from __future__ import annotations

import pytest

from migrate_agent.agent.loop.attempts import best_evidence, breaks_a_method
from migrate_agent.agent.model.interface import Attempt, Proposer
from migrate_agent.tools.types import Evidence, Verdict


def attempt(number: int, by: Proposer, passed: int) -> Attempt:
    """An attempt that passed so many checks and failed the next."""
    verdicts = (*(Verdict("static", f"check{count}", "pass") for count in range(passed)), Verdict("numeric", f"of {number}", "fail"))
    return Attempt(number, by, evidence=Evidence("m.py:M", verdicts))


@pytest.mark.parametrize(
    ("attempts", "told"),
    [
        pytest.param([attempt(1, "rules", 3), attempt(2, "repair", 3)], 1, id="a repair that came as far"),
        pytest.param([attempt(1, "rules", 3), attempt(2, "repair", 4)], 2, id="a repair that came further"),
        pytest.param([attempt(1, "rules", 3), attempt(2, "llm", 3)], 2, id="the later of equals"),
        pytest.param([attempt(1, "llm", 4), attempt(2, "llm", 3)], 1, id="an earlier one that came further"),
    ],
)
def test_the_attempt_that_came_furthest(attempts: list[Attempt], told: int) -> None:
    best = best_evidence([*attempts, Attempt(9, "llm", refused="it does not parse")])
    assert best is not None and best.verdicts[-1].check == f"of {told}"


def test_without_evidence_nothing_is_told() -> None:
    assert best_evidence([Attempt(1, "llm", refused="it does not parse")]) is None


@pytest.mark.parametrize(
    ("before", "after", "breaks"),
    [((), (), False), ((), ("reverse",), True), (("reverse",), ("reverse",), False), (("reverse",), ("reverse", "sample"), True)],
)
def test_a_repair_may_break_no_method(before: tuple[str, ...], after: tuple[str, ...], breaks: bool) -> None:
    attempts = [Attempt(1, "rules", evidence=Evidence("m.py:M", (), refused=before)), Attempt(2, "repair", evidence=Evidence("m.py:M", ()))]
    assert breaks_a_method(attempts, Evidence("m.py:M", (), refused=after)) == breaks
