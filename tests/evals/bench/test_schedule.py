"""Small units under the schedule of large ones are judged as without it, and notes say what had no time."""

from __future__ import annotations

import pytest

from migrate_agent.evals.bench.schedule import judged, row

NAMES = ("right/embedding_one_hot_lookup", "wrong/embedding_padding_gradient")


@pytest.mark.ci
def test_verdicts_are_those_without_a_schedule() -> None:
    result = row(NAMES, 300.0)
    assert (result["misjudged"], result["left_something_out"]) == ([], [])


@pytest.mark.ci
def test_without_time_what_must_run_is_judged_and_the_rest_named() -> None:
    (_, evidence), *_ = judged(NAMES[:1], 1e-3)
    assert evidence.status == "verified"
    assert any("edges" in note for note in evidence.notes)
