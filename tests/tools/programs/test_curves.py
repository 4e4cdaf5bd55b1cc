"""Loss curves of two runs: what is read of their traces, and how they are shown."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from migrate_agent.agent.runs.loss_chart import loss_chart
from migrate_agent.agent.runs.verify_page import curves
from migrate_agent.tools.programs.judge.compare import Pair, Ran, native_losses
from migrate_agent.tools.programs.judge.curves import loss_curves


def _trace(folder: Path, losses: list[list[float]]) -> None:
    folder.mkdir(parents=True)
    events = [{"kind": "backward", "loss": loss} for row in losses for loss in row]
    for number, row in reversed(list(enumerate(losses))):
        events.insert(sum(map(len, losses[: number + 1])), {"kind": "step"})
        assert row
    (folder / "trace.json").write_text(json.dumps({"events": events, "lines": []}))


def test_curves_are_read_where_both_sides_ran(tmp_path: Path) -> None:
    """Several backward passes of one step count as their mean."""
    _trace(tmp_path / "original-native", [[1.0, 3.0], [1.0]])
    assert loss_curves(tmp_path) == {}
    _trace(tmp_path / "candidate-native", [[2.0], [1.5]])
    assert loss_curves(tmp_path) == {"own precision": {"torch": [2.0, 1.0], "jax": [2.0, 1.5]}}


def test_both_curves_and_their_difference_are_drawn() -> None:
    plots = curves({"training": {"float64": {"torch": [2.0, 1.0], "jax": [2.0, 1.5]}}})
    assert ["polyline" in plot for plot in plots] == [True, True]
    assert "jax - torch" in plots[1] and "0.5" in plots[1]


def test_a_chart_has_a_line_for_each_step() -> None:
    lines = loss_chart([2.0, 1.0], [2.0, 1.5])
    assert [line.split()[0] for line in lines] == ["step", "0", "1"]
    assert "2.000000" in lines[1] and lines[1].endswith("+0.0e+00") and lines[2].endswith("+5.0e-01")
    assert lines[1].count("#") > lines[2].count("#")


def test_a_long_chart_is_thinned_and_takes_what_is_not_a_number() -> None:
    lines = loss_chart([1.0] * 100, [math.nan] * 100, rows=30)
    assert 25 < len(lines) < 33 and "?" in lines[1]


def _run(losses: list[float], drew: bool = False) -> Ran:
    events = [event for loss in losses for event in ({"kind": "backward", "loss": loss}, {"kind": "step"})]
    return Ran({"events": events, "drew": drew}, {})


@pytest.mark.parametrize(
    ("exact", "original", "rewrite", "status"),
    [
        ([2.0, 1.0, 0.5], [2.0, 1.0, 0.5], [2.0, 1.0, 0.5], "pass"),
        ([2.0, 1.0, 0.5], [2.0, 1.0, 0.5], [2.0, 1.0], "fail"),
        # Rounding ends the original elsewhere too, so that the steps which both made are compared.
        ([2.0, 1.0, 0.5], [2.0, 1.0], [2.0, 1.0, 0.5], "pass"),
        ([2.0, 1.0, 0.5], [2.0, 1.0], [2.0, 3.0, 0.5], "fail"),
        ([2.0, 1.0, 0.5], [2.0, 1.0], [], "fail"),
    ],
)
def test_curves_of_the_own_precision(exact: list[float], original: list[float], rewrite: list[float], status: str) -> None:
    """Each step is compared, and their number where rounding does not decide it."""
    pair = Pair(_run(exact), _run(exact), _run(exact))
    assert native_losses(pair, Pair(_run(original), _run(original), _run(rewrite))).status == status


@pytest.mark.parametrize(
    ("drew", "original", "rewrite", "status"),
    [
        # The original's own draws move its losses by 0.4 %, the rewrite's by 0.8 %.
        (True, 1.004, 0.996, "pass"),
        (False, 1.004, 0.996, "fail"),
        (True, 1.0004, 0.992, "fail"),
        (True, 1.004, 0.985, "fail"),
    ],
)
def test_curves_with_draws_of_modules(drew: bool, original: float, rewrite: float, status: str) -> None:
    """What the original's draws move by is what a rewrite's may; one without draws has no such room."""
    pair = Pair(_run([1.0] * 4, drew), _run([1.0] * 4, drew), _run([1.0] * 4))
    assert native_losses(pair, Pair(_run([original] * 4), _run([original] * 4), _run([rewrite] * 4))).status == status
