"""A few jobs in a row while things break; `python -m migrate_agent.evals.bench.faults` runs hundreds, and restarts the engine too."""

from __future__ import annotations

import pytest

from migrate_agent.evals.bench import faults
from migrate_agent.tests.sandbox.support import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_job_ends_well_or_says_why_not(kind: str) -> None:
    row = faults.measured(kind, 8, restart=False)
    assert faults.sound(row), row
    assert row["verdicts"]["worker: right"] >= 1, "what the job did not cause is tried again"


@pytest.mark.parametrize(
    "change", [{"ended": 7}, {"verdicts": {"worker: wrong": 8}}, {"verdicts": {"no fault: clear": 8}}, {"left": ["container x"]}]
)
def test_what_is_not_sound(change: dict[str, object]) -> None:
    row = {"jobs": 8, "ended": 8, "verdicts": {"no fault: right": 4, "worker: clear": 4}, "left": []}
    assert faults.sound(row)
    assert not faults.sound({**row, **change})
