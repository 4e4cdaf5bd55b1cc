"""The judge on right and wrong programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.programs.judge.judge import Judge
from migrate_agent.tools.programs.judge.running import WORK
from migrate_agent.tools.programs.judge.variants import Variant
from migrate_agent.tools.programs.migrate import lay_out
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.types import Limits
from tests.tools.programs.corpus import EXTRA, RIGHT, SCRIPT, WRONG
from tests.tools.programs.corpus_forms import CASES as CASES_BY_FORM
from tests.tools.programs.corpus_forms import Case
from tests.tools.programs.forms import FORMS
from tests.tools.programs.scripts import TRAIN, rewritten

CASES = [(True, RIGHT[1]), *((False, case) for case in WRONG[3::8])]
"""Some of the corpus, spread over its kinds; each takes a run of the program."""


def changed(text: str, old: str, new: str) -> str:
    """The rewrite with one place changed, and with what the change calls."""
    assert old in text
    called = [part for part in EXTRA.strip().split("\n\n\n") if part.partition("(")[0].removeprefix("def ") in new]
    return text.replace("\n\ndef main", "".join(f"\n\n{part}\n" for part in called) + "\n\ndef main", 1).replace(old, new, 1)


def test_every_case_changes_the_rewrite(tmp_path: Path) -> None:
    """A text that is not there any more would test nothing."""
    text = rewritten(SCRIPT, tmp_path).files["train_jax.py"]
    missing = [name for name, old, new in (*WRONG, *RIGHT) if old not in text or (old and changed(text, old, new) == changed(text, "", ""))]
    assert missing == []


@pytest.mark.slow
def test_right_and_wrong_programs(tmp_path: Path, sandbox: ProcessSandbox) -> None:
    """A right program in another form is verified, and none with a mistake is."""
    files = rewritten(SCRIPT, tmp_path).files
    judge = Judge(Program(("train.py",)), tmp_path / "repository", sandbox, tmp_path / "runs", Limits(seconds=120), lambda text: None)
    for right, (name, old, new) in CASES:
        folder = tmp_path / "candidate"
        folder.mkdir(exist_ok=True)
        for path, text in files.items():
            (folder / path).write_text(changed(text, old, new) if path == "train_jax.py" else text)
        evidence = judge.judge(folder, "train_jax.py")
        assert (evidence.status == "verified") == right, (name, [v for v in evidence.verdicts if v.status != "pass"])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FORMS))
def test_forms_are_verified(tmp_path: Path, sandbox: ProcessSandbox, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form of a script becomes a program that computes the same."""
    monkeypatch.chdir(tmp_path)
    files = rewritten(FORMS[name], tmp_path).files
    judge = Judge(Program(("train.py",)), tmp_path / "repository", sandbox, tmp_path / "runs", Limits(seconds=120), lambda text: None)
    candidate = lay_out(tmp_path / "repository", files, tmp_path / "candidate")
    evidence = judge.judge(candidate, "train_jax.py")
    assert evidence.status == "verified", evidence.verdicts


def edited(text: str, case: Case) -> str:
    """The rewrite with the edits of a case."""
    for old, new in case.edits:
        assert old in text, (case.name, old)
        text = text.replace(old, new, 1)
    return text


@pytest.mark.ci
@pytest.mark.parametrize("form", sorted(CASES_BY_FORM))
def test_every_case_of_a_form_changes_its_rewrite(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that judge the cases are slow, and would tell late that a text is not there any more."""
    monkeypatch.chdir(tmp_path)
    text = rewritten(FORMS.get(form, TRAIN), tmp_path).files["train_jax.py"]
    assert [case.name for case in CASES_BY_FORM[form] if edited(text, case) == text and case.edits] == []


@pytest.mark.slow
@pytest.mark.parametrize("form", sorted(CASES_BY_FORM))
def test_other_forms_and_their_mistakes(tmp_path: Path, sandbox: ProcessSandbox, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is right in another form is verified, and no single mistake is."""
    monkeypatch.chdir(tmp_path)
    files = rewritten(FORMS.get(form, TRAIN), tmp_path).files
    judge = Judge(Program(("train.py",)), tmp_path / "repository", sandbox, tmp_path / "runs", Limits(seconds=120), lambda text: None)
    wrong = []
    for case in CASES_BY_FORM[form]:
        text = edited(files["train_jax.py"], case)
        candidate = lay_out(tmp_path / "repository", {**files, "train_jax.py": text}, tmp_path / "candidate")
        evidence = judge.judge(candidate, "train_jax.py")
        if (evidence.status == "verified") != case.right:
            wrong.append((case.name, evidence.status, [v for v in evidence.verdicts if v.status != "pass"]))
    assert wrong == []


def test_the_folder_of_a_variant_stays_the_same_one(tmp_path: Path) -> None:
    """A worker that shows it goes on doing so, with what the last run before left."""
    judge, before = object.__new__(Judge), Variant("--stop 3")
    judge.folder, variant = tmp_path / "runs", Variant("--resume", before)
    root, left = tmp_path / "repository", judge.folder / f"original-exact{before.folder}" / WORK
    for folder, name in ((root, "train.py"), (left, "last.pt")):
        folder.mkdir(parents=True)
        (folder / name).touch()
    first = judge.stage(root, variant)
    number = first.stat().st_ino
    (first / "__pycache__").mkdir()
    (first / "log.txt").touch()
    second = judge.stage(root, variant)
    assert (second, second.stat().st_ino) == (first, number)
    assert sorted(path.name for path in second.iterdir()) == ["last.pt", "train.py"]
