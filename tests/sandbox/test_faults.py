"""A few jobs in a row while things break; `python -m migrate_agent.evals.bench.faults` runs hundreds, and restarts the engine too."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from migrate_agent.evals.bench import faults
from migrate_agent.sandbox import SandboxError, open_sandbox
from migrate_agent.tests.sandbox.support import KINDS, job
from migrate_agent.tools.types import Run
from migrate_agent.tools.verify.contract.scenario import CandidateFailed, Lost, OriginalFailed
from migrate_agent.tools.verify.evidence.candidate import read_arrays

pytestmark = pytest.mark.slow  # the lane for Docker runs them


@pytest.mark.parametrize("kind", KINDS)
def test_every_job_ends_well_or_says_why_not(kind: str) -> None:
    row = faults.measured(kind, 8, restart=False)
    assert faults.sound(row), row
    assert row["verdicts"]["worker: right"] >= 1, "what the job did not cause is tried again"
    assert all(word == "ok" or word.startswith("lost: no space is left") for word in row["words"])


def test_a_lost_run_leaves_the_unit_unverified(tmp_path: Path) -> None:
    """Neither side is to blame."""
    for kind, error in ((CandidateFailed, "crash"), (Lost, "lost")):
        with pytest.raises(kind, match=error):
            read_arrays(Run(error, tmp_path, error="the reason"), "exact")  # type: ignore[arg-type]
    assert issubclass(Lost, OriginalFailed), "which the verifier takes for unverified"


def test_no_room_for_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("migrate_agent.sandbox.staging.LEAST_BYTES", 2**62)
    monkeypatch.setattr("migrate_agent.sandbox.staging.Base.stage", no_space)
    with open_sandbox("process", folder=tmp_path) as sandbox, pytest.raises(SandboxError, match="make room"):  # type: ignore[attr-defined]
        sandbox.run(job("echo"))


@pytest.mark.parametrize(
    "change", [{"ended": 7}, {"verdicts": {"worker: wrong": 8}}, {"verdicts": {"no fault: clear": 8}}, {"left": ["container x"]}]
)
def test_what_is_not_sound(change: dict[str, object]) -> None:
    row = {"jobs": 8, "ended": 8, "verdicts": {"no fault: right": 4, "worker: clear": 4}, "left": []}
    assert faults.sound(row)
    assert not faults.sound({**row, **change})
