"""A verdict on NaN says which runs it did not judge."""

from __future__ import annotations

import pytest

from migrate_agent.tools.types import Outcome, Verdict
from migrate_agent.tools.verify.checks.numeric.nonfinite import with_left_out


@pytest.mark.parametrize(
    ("status", "left_out", "detail"),
    [
        ("pass", [], "a"),
        (
            "pass",
            ["e0-nan", "e0-nan", "e0-inf"],
            "a; not judged: 3 outputs of e0-inf, e0-nan, where torch's own are undefined or hang on rounding",
        ),
        ("fail", ["e0-nan"], "a"),
    ],
)
def test_what_was_not_judged_is_said(status: Outcome, left_out: list[str], detail: str) -> None:
    found = with_left_out(Verdict("numeric", "nonfinite", status, detail="a"), left_out)
    assert found is not None and found.detail == detail


def test_no_verdict_stays_none() -> None:
    assert with_left_out(None, ["e0-nan"]) is None
