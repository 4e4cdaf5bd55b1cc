"""What the verifier's suite says about its outcomes: rates by kind, places, seeds; and what the scoreboard makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from migrate_agent.evals import scoreboard
from migrate_agent.evals.mutation.mutant_judges import methods_not_run
from migrate_agent.evals.suite import Outcome
from migrate_agent.evals.suites.verifier import report, summary
from migrate_agent.tools.types import Evidence

THROUGH = {"1e-02": True, "1e-04": True, "1e-05": False}


def outcome(case: str, status: Any, **details: Any) -> Outcome:
    """An outcome of the kind that stands before the slash."""
    return Outcome(case, status, details.pop("why", ""), {"kind": case.partition("/")[0], **details})


OUTCOMES = [
    outcome("wrong/a", "right", place="fc", named="fc", allclose=THROUGH, seeds=1, verdicts=["failed"]),
    outcome("wrong/b", "right", place="fc", named="norm", allclose=THROUGH, seeds=1, verdicts=["failed"]),
    outcome("wrong/c", "wrong", place="fc", named=None, allclose=THROUGH, seeds=3, runs=3, verdicts=["failed", "verified"]),
    outcome("wrong/d", "right", place="", named="", allclose=dict.fromkeys(THROUGH, False), seeds=3, runs=1, verdicts=["failed"]),
    outcome("cheats/a", "excluded", why="in process: needs a mount"),
    outcome("right/a", "right", seeds=3, runs=3, verdicts=["verified"]),
    outcome("subject/a", "excluded", why="verified; its mutants follow", listed=4),
    outcome("mutants/a", "right", check="parity first"),
    outcome("mutants/b", "right", check="candidate_runs", detail="its exact run ended with timeout: it took longer than 60 s"),
    outcome("mutants/c", "excluded", why="equivalent: so it is"),
    outcome("mutants/d", "excluded", why="the same program as the rewrite", check="same program"),
    outcome("mutants/e", "excluded", why="no example calls the method", check="not run"),
]


def test_rates_are_counted_by_kind() -> None:
    found = summary(OUTCOMES)
    assert [found[kind] for kind in ("wrong", "cheats", "right", "mutants")] == [
        {"right": 3, "run": 4, "left out": 0},
        {"right": 0, "run": 0, "left out": 1},
        {"right": 1, "run": 1, "left out": 0},
        {"right": 2, "run": 2, "left out": 3},
    ]
    assert found["allclose lets through"] == {"1e-02": 3, "1e-04": 3, "1e-05": 0}
    assert found["localised"] == {"right": 1, "of": 2}
    assert found["cases by seeds"] == {"1": 2, "3": 3} and found["verdict not the same for all seeds"] == ["wrong/c"]


def test_the_report_says_all_of_it() -> None:
    text = "\n".join(report(OUTCOMES))
    for line in (
        "wrong rewrites refused: 3 of 4",
        "cheats refused: 0 of 0, 1 left out",
        "an allclose on random inputs at 1e-04 lets 3 of the 4 wrong rewrites through",
        "right submodule named: 1 of 2",
        "refused as their time ran out, which a machine under load does to any: 1",
        "mutants: 2 of 4 listed (1 of them far off in plain float32); left out: 1 traced to the same program, "
        "1 in code that no example runs (the verifier notes it), 1 argued to be equivalent",
        "verified with 3 seeds: 3 cases",
        "of these, refused by a check that no seed changes, and so run with one seed only: 1",
        'verdict not the same for all seeds: 1 (["wrong/c"])',
    ):
        assert line in text.splitlines()


def test_the_scoreboard_tells_the_rates_and_no_mutant_by_name() -> None:
    cases = [{"case": each.case, "status": each.status, "reason": each.reason, **each.details} for each in OUTCOMES]
    said = scoreboard.sentence({"suite": "verifier", "summary": summary(OUTCOMES), "cases": cases})
    assert (
        "wrong rewrites refused 3 of 4" in said
        and "right rewrites accepted 1 of 1 (1 more mutants are the same program, 1 are argued to be equivalent, 1 are in code that no example runs)"
        in said
    )
    assert "needs a mount (1)" in said and "mutants follow" not in said and "so it is" not in said


@pytest.mark.parametrize(
    ("note", "methods"),
    [
        ("no example runs the methods generate, num_params: nothing is said of them", {"generate", "num_params"}),
        ("no example runs the lines 3, 5-7 and the methods step: nothing is said of them", {"step"}),
        ("no example runs the methods step; of what it uses, no example runs the lines 3 of f: nothing is said of them", {"step"}),
        ("of what it uses, no example runs the lines 3 of the.methods: nothing is said of them", set()),
        ("no example runs the lines 3, 5-7: nothing is said of them", set()),
        ("not compared, since the original does not take it: the methods a: nothing is said", set()),
    ],
)
def test_methods_that_no_example_calls_are_read_from_the_note(note: str, methods: set[str]) -> None:
    assert methods_not_run(Evidence("u", (), 0.0, (note,))) == methods
