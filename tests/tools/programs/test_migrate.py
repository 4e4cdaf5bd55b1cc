"""What becomes of a program that is judged, by what no run of it reaches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from migrate_agent.tools.programs import migrate
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.types import Draft, Evidence, Hole, Limits, Span, Verdict

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


@pytest.mark.parametrize(
    ("watched", "covered", "chosen"),
    [
        ((), (), ()),
        (("--resume",), (), ()),
        (("--resume",), ("--resume",), ("--resume",)),
        # The rules cover one of them alone.
        (("--resume", "--test"), ("--test",), ("--test",)),
        (("--resume", "--test"), ("--resume", "--test"), ("--resume", "--test")),
    ],
)
def test_a_draft_knows_the_further_runs_that_are_watched_and_covered(
    watched: tuple[str, ...], covered: tuple[str, ...], chosen: tuple[str, ...]
) -> None:
    """It is the draft of the plain run alone where there are none."""

    def rewrite(observations: Any, **options: Any) -> Draft:
        holes = tuple(Hole("train.py", Span(1, 0, 1, 0), "training-step", name, "") for name in observations if name not in covered)
        return Draft({"train_jax.py": " ".join(observations)}, holes)

    rows: Any = [(further, {further: {}}) for further in watched]
    for plain in (Draft({}), Draft({"train_jax.py": ""})):
        further, draft = migrate._with_further(plain, {}, rows, rewrite)
        assert sorted(draft.files["train_jax.py"].split()) == list(map(str, further)) == list(chosen)
