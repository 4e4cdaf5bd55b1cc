"""A unit's work comes back from its folder as it was written, and a node that was killed before its checkpoint can be done again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate_agent.agent.loop.nodes.propose import _next_of_ensemble
from migrate_agent.agent.loop.unit_work import Ensemble, UnitWork, load_draft, load_settled, load_work, reopen_work, save_work
from migrate_agent.agent.model.interface import Attempt
from migrate_agent.tools.types import Draft, Evidence, UnitReport, Verdict

EVIDENCE = Evidence("a.py:A", (Verdict("static", "parses", "pass"),), 0.5)


def whole(folder: Path) -> UnitWork:
    """A work with all its parts."""
    return UnitWork(
        folder,
        (Attempt(1, "rules"), Attempt(2, "llm", {"a.py:A": "class A: ..."}, evidence=EVIDENCE)),
        {"a.py:A": "class A: ..."},
        Ensemble(1, ({"a.py:A": "class A: pass"},)),
        "mind the gap",
        "Because torch does.",
        EVIDENCE,
        Draft({"a_jax.py": "class A: ...\n"}),
        Draft({"a_jax.py": "class A: pass\n"}),
        UnitReport("a.py", "A", "a_jax.py", "verified"),
        ("a.py:A", "b.py:B"),
    )


def test_all_parts_come_back(tmp_path: Path) -> None:
    save_work(UnitWork(tmp_path), whole(tmp_path))
    assert load_work(tmp_path, 2) == whole(tmp_path)
    assert load_draft(tmp_path) == whole(tmp_path).draft
    settled = load_settled(tmp_path)
    assert (settled.report.status, settled.waits, settled.texts) == ("verified", True, whole(tmp_path).texts)


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    save_work(UnitWork(tmp_path), whole(tmp_path))
    for file in list(tmp_path.rglob("*.*")):
        if file.is_file():
            file.unlink()
    before = whole(tmp_path)
    save_work(before, replace(before.with_attempt(Attempt(3, "repair")), hint="again", waits_for=()))
    assert sorted(file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.*")) == ["attempts/0003.json", "hint.txt"]


def test_attempts_that_the_checkpoint_does_not_know_are_left_out(tmp_path: Path) -> None:
    save_work(UnitWork(tmp_path), whole(tmp_path))
    work = load_work(tmp_path, 1)
    assert work.attempts == (Attempt(1, "rules"),)
    save_work(work, work.with_attempt(Attempt(2, "repair")))
    assert [attempt.by for attempt in load_work(tmp_path, 2).attempts] == ["rules", "repair"]


def test_evidence_belongs_to_its_attempt(tmp_path: Path) -> None:
    work = UnitWork(tmp_path, (Attempt(1, "rules"), Attempt(2, "llm"))).with_evidence(2, EVIDENCE)
    assert [attempt.evidence for attempt in work.attempts] == [None, EVIDENCE] and work.evidence == EVIDENCE


def test_a_reopened_unit_has_not_ended(tmp_path: Path) -> None:
    save_work(UnitWork(tmp_path), whole(tmp_path))
    reopen_work(tmp_path)
    work = load_work(tmp_path, 2)
    assert (work.result, work.waits_for) == (None, ()) and work.draft == whole(tmp_path).draft
    with pytest.raises(FileNotFoundError):
        load_settled(tmp_path)


@pytest.mark.parametrize(("attempts", "texts"), [(1, None), (2, {"a.py:A": "class A: pass"})])
def test_an_ensemble_is_tried_after_the_proposal_that_came_with_it(tmp_path: Path, attempts: int, texts: dict[str, str] | None) -> None:
    """A node that stored it and was killed before its checkpoint is done again with the attempts that it had: it asks again."""
    assert _next_of_ensemble({"attempts": attempts}, whole(tmp_path)) == texts
