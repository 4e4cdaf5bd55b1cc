"""The submodule that diverges first."""

from __future__ import annotations

import numpy as np

from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.verify.report.localise import Record, find


def record(path: str, given_value: float, result: float) -> Record:
    """A call of a submodule."""
    return Record(path, "Layer", (np.array([given_value]),), (np.array([result]),))


def test_culprit_got_equal_inputs() -> None:
    theirs = [record("a.fc", 1, 2), record("a.out", 3, 4), record("a", 1, 4), record("b", 4, 5), record("", 1, 5)]
    ours = [record("a.fc", 1, 2), record("a.out", 3.5, 4.5), record("a", 1, 4.5), record("b", 4.5, 5.5), record("", 1, 5.5)]
    found = find(theirs, ours, tolerances.FLOOR_FP64)
    assert found is not None and found.path == "a"  # a.out only passes on what a's own code made of a.fc's result
    ours[0] = record("a.fc", 1, 2.5)
    found = find(theirs, ours, tolerances.FLOOR_FP64)
    assert found is not None and found.path == "a.fc"
    assert find(theirs, theirs, tolerances.FLOOR_FP64) is None
