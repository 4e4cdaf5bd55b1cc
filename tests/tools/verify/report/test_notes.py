"""Notes on scenarios that were left out."""

from __future__ import annotations

from migrate_agent.tools.harness.torch_side.precision import Undetermined
from migrate_agent.tools.verify.original.scenarios.writer import undetermined_reason
from migrate_agent.tools.verify.report.notes import left_out


def test_what_is_left_out_is_told_by_reason() -> None:
    names = {"shape-empty": "", "edge-nan": "it is up to it", "edge-inf": "it is up to it", "new inputs for seed 1": ""}
    assert left_out({"name": name, "reason": reason} for name, reason in names.items()) == [
        "not compared, since the original does not take it: shape-empty, new inputs for seed 1",
        "not compared, since it is up to it: edge-nan, edge-inf",
    ]
    errors = (ValueError("none (at all)"), Undetermined("it is\nup to it"), None)
    assert [undetermined_reason(error) for error in errors] == ["", "it is up to it", ""]
