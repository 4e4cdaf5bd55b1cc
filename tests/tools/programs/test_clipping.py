"""Which further runs it takes for the bounds of clipping to matter."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from migrate_agent.tools.programs.judge.clipping import Clipping, Scaled, clipping_runs, clipping_verdict
from migrate_agent.tools.programs.judge.compare import Ran


def _run(sizes: Sequence[float], scale: float = 1.0, losses: int = 1, loss: float = 0.5) -> Ran:
    """A run of which each update clips gradients of these sizes to 1."""
    events = []
    for size in sizes:
        events += [{"kind": "backward", "loss": loss}] * losses
        events += [{"kind": "clip", "site": "train.py:7", "ratio": size * scale}, {"kind": "step"}]
    return Ran({"events": events, "lines": [], "steps": len(sizes), "problems": [], "partial": False}, {"end/0/weight": [loss]})


@pytest.mark.parametrize(
    ("sizes", "losses", "sides"),
    [
        ([0.2, 5.0], 1, ""),
        ([0.2, 0.1], 1, "over"),
        ([8.0, 5.0], 1, "under"),
        ([1.2, 1.5], 1, "both"),
        # Each of three losses would have to be clipped by itself too.
        ([0.2, 5.0], 3, "over"),
    ],
)
def test_gradients_lie_on_both_sides_of_a_bound(sizes: list[float], losses: int, sides: str) -> None:
    """Gradients are multiplied until they do, and not at all where they do already."""
    scales: list[float] = []

    def run(scale: float) -> tuple[Ran, Ran]:
        scales.append(scale)
        return _run(sizes, scale, losses), _run(sizes, scale, losses)

    clipping = clipping_runs(_run(sizes, 1.0, losses), run)
    assert clipping.idle == ()
    assert [side for side, has in (("over", any(s > 1 for s in scales)), ("under", any(s < 1 for s in scales))) if has] == {
        "": [],
        "over": ["over"],
        "under": ["under"],
        "both": ["over", "under"],
    }[sides]


def test_a_bound_that_no_run_reaches_is_named() -> None:
    """Gradients that are all zero lie under every bound."""
    clipping = clipping_runs(_run([0.0, 0.0]), lambda scale: None)
    verdict = clipping_verdict(clipping, [])
    assert (verdict.status, verdict.detail) == ("unverified", "bounds on one side of all gradients: train.py:7")


@pytest.mark.parametrize(("loss", "status"), [(0.5, "pass"), (0.6, "fail")])
def test_the_runs_are_compared(loss: float, status: str) -> None:
    """A difference that shows with scaled gradients alone is one."""
    scaled = Scaled(10.0, _run([2.0, 5.0]), _run([2.0, 5.0]))
    assert clipping_verdict(Clipping((scaled,)), [_run([2.0, 5.0], loss=loss)]).status == status
