"""Public repositories: which there are, how a commit is laid out, and what counts as whole. No public code is read here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from migrate_agent.evals.suite import Options, Outcome
from migrate_agent.evals.suites.repositories import Repository, figures, groups, lay_out_commit, load_repositories, report, run
from migrate_agent.evals.zoo_packages.packages import Package, PackageError

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]


def test_each_top_model_of_the_list_has_an_example() -> None:
    for name, repository in load_repositories().items():
        shown = {row["module"] for row in repository.package.examples}
        assert repository.top, name
        assert set(repository.top) == shown, name
        assert len(repository.commit) == 40, name


def _clone(folder: Path) -> str:
    folder.mkdir(parents=True)
    (folder / "model.py").write_text("import torch\n")
    (folder / "weights.pt").write_bytes(b"\0" * 10)
    (folder / "sub").mkdir()
    (folder / "sub" / "README.md").write_text("text\n")
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*GIT, *command], cwd=folder, check=True)
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("place", ["name", "owner/name", "owner+name"])
def test_lays_out_the_text_files_of_a_commit(tmp_path: Path, place: str) -> None:
    commit = _clone(tmp_path / "clones" / place)
    repository = Repository(Package("name", "", (), ()), "https://github.com/owner/name", commit, ())
    lay_out_commit(repository, tmp_path / "clones", tmp_path / "out")
    assert sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")) == [
        "model.py",
        "sub/README.md",
    ]


def test_without_clones_nothing_is_judged() -> None:
    assert groups(Options(filter="TCN")) == [("TCN",)]
    assert [(outcome.status, "--sources" in outcome.reason) for outcome in run(("TCN",), Options())] == [("refused", True)]


def test_says_which_clone_is_missing(tmp_path: Path) -> None:
    repository = Repository(Package("name", "", (), ()), "https://github.com/owner/name", "0" * 40, ())
    with pytest.raises(PackageError, match=r"no clone of https://github\.com/owner/name"):
        lay_out_commit(repository, tmp_path, tmp_path / "out")


def test_a_repository_is_whole_where_all_its_top_models_are_verified() -> None:
    def outcome(case: str, status: str, top: bool) -> Outcome:
        return Outcome(case, status, "", {"top": top})  # type: ignore[arg-type]  # a status of a test

    outcomes = [
        outcome("a/m.py:Top", "right", True),
        outcome("a/m.py:Part", "refused", False),
        outcome("b/m.py:Top", "right", True),
        outcome("b/m.py:Other", "wrong", True),
    ]
    assert figures(outcomes) == {"units": 4, "verified": 2, "top": 3, "top_verified": 2}
    assert list(report(outcomes))[-1] == "whole: 1 of 2 repositories"
