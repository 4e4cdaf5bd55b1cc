"""What becomes of a program that is judged, by what no run of it reaches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from migrate_agent.tools.programs import migrate
from migrate_agent.tools.programs.observe import ObservationError
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.types import Draft, Evidence, Limits, Verdict

TEXT = "for step in range(4):\n    if step > 8:\n        stop(step)\n"


@pytest.mark.parametrize(("idle", "status"), [([], "verified"), ([(2, "`step == last`")], "unverified")])
def test_an_error_stands_for_lines_and_not_for_lost_conditions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle: list[tuple[int, str]], status: str
) -> None:
    (tmp_path / "train.py").write_text(TEXT)
    reach = Verdict("behavioural", "reach", "unverified", 1.0, 0.0, "lines")
    judge: Any = SimpleNamespace(
        idle=idle, missed=([3], [3]), missed_beside=(), further=(), judge=lambda root, target: Evidence("train.py", (reach,), 0.0)
    )
    seen = SimpleNamespace(recording=SimpleNamespace(observations={}), optimizers=(), constructions=(), contained=())
    monkeypatch.setattr(migrate, "observe", lambda *args: seen)
    monkeypatch.setattr(migrate, "rewrite_program", lambda *args, **kwargs: Draft({"train_jax.py": TEXT}))
    monkeypatch.setattr(migrate, "Judge", lambda *args: judge)
    sandbox: Any = None
    found = migrate.migrate_program(Program(("train.py",)), tmp_path, sandbox, tmp_path.parent / "folder", Limits(), lambda text: None)
    assert found.evidence is not None
    assert found.evidence.status == status


def test_a_further_run_that_cannot_be_watched_is_left_out() -> None:
    def observed(further: Any) -> Any:
        raise ObservationError("train.py does not run")

    judge: Any = SimpleNamespace(further=("--resume",))
    seen: Any = SimpleNamespace(recording=SimpleNamespace(observations={}), constructions=())
    draft = Draft({"train_jax.py": TEXT})
    assert migrate._with_further(judge, draft, seen, observed, lambda **options: Draft({})) is draft
    assert judge.further == ()
