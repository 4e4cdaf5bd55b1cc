"""A numeric failure of a run says how to run it again, on the tree that was judged."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from migrate_agent.agent.loop.rerun import candidate_beside, replay_note
from migrate_agent.agent.loop.speculation import _adopt
from migrate_agent.tools.types import Evidence, Unit, Verdict

UNIT = Unit("a/model.py", "Net", "a_jax/model.py", "rewrite")
DETAIL = "first differs in fc (Linear); e0-eval-s0 output 0: error 1.0e-02 over the limit 1.0e-11"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A unit's folder as a failed verification leaves it."""
    for name, text in {"candidate/a_jax/model.py": "x = 1\n", "verify/failing.json": json.dumps({"detail": DETAIL})}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def evidence(detail: str) -> Evidence:
    return Evidence(UNIT.id, (Verdict("numeric", "forward_fp64", "fail", 1e-2, 1e-11, detail),))


def test_the_line_names_the_saved_failure_and_its_candidate(folder: Path) -> None:
    line = replay_note("/r e p o", UNIT, folder, evidence(DETAIL))
    words = shlex.split(line.removeprefix("run the failure again: "))
    assert words == ["migrate-agent", "verify", "--repo", "/r e p o", "a/model.py:Net", "--replay", str(folder / "verify/failing.json")]
    assert candidate_beside(Path(words[-1])) == {"a_jax/model.py": "x = 1\n"}


def test_no_line_for_another_failure_than_the_saved_one(folder: Path, tmp_path: Path) -> None:
    assert replay_note("/repo", UNIT, folder, evidence("something else")) == ""
    assert replay_note("/repo", UNIT, tmp_path / "elsewhere", evidence(DETAIL)) == ""
    assert candidate_beside(tmp_path / "elsewhere" / "failing.json") == {}


def test_what_a_guess_left_is_moved_to_the_unit(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "unit"
    (target / "candidate").mkdir(parents=True)
    (target / "candidate" / "old.py").write_text("")
    guessed = tmp_path / "ahead"
    guessed.mkdir()
    for part in ("candidate", "verify"):
        (folder / part).rename(guessed / part)
    _adopt(guessed, target)
    assert replay_note("/repo", UNIT, target, evidence(DETAIL)) and not guessed.exists()
    assert not (target / "candidate" / "old.py").exists()
