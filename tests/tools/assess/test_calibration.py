"""The rows of the calibration are those of the stored first looks, and an estimate is held against repositories that it has not seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate_agent.tools.assess.calibration import ROWS, Measured, error_line, holdouts, verified_share

RESULTS = Path(__file__).parents[3] / "evals/results/draw"
DRAWN = [row for row in ROWS if not row.name.startswith("repositories/")]


@pytest.mark.parametrize("row", DRAWN, ids=lambda row: row.name)
def test_rows_are_the_stored_first_looks(row: Measured) -> None:
    cases = json.loads((RESULTS / row.name / "examples.json").read_text())["cases"]
    statuses = [case["status"] for case in cases if case["status"] != "excluded"]
    assert (row.units, row.verified) == (len(statuses), statuses.count("right"))


def test_a_repository_does_not_estimate_itself() -> None:
    rows = (Measured("a", 10, 10, 100), Measured("b", 10, 0, 900), Measured("c", 10, 0, 100))
    first = holdouts(rows)[0]
    assert first.row.name == "a" and first.share.likely == first.share.high == 0 and first.seconds.likely == 50
    assert verified_share(rows).likely == pytest.approx(1 / 3)


def test_the_error_is_told() -> None:
    assert error_line().startswith(f"{len(ROWS)} repositories and packages at first look")
