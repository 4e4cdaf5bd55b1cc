"""The user's repository is read and never touched; our branch grows in a worktree of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate_agent.agent.config.errors import UsageError, UserError
from migrate_agent.agent.repository.git import Branch, Identity, Repository, manifest, open_repository
from migrate_agent.tests.agent.repositories import git, repository, write

FILES = {"model.py": "import torch\n", "pkg/data.txt": "x\r\n", ".gitattributes": "pkg export-ignore\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


def branch_of(opened: Repository, name: str = "ours") -> Branch:
    return Branch(opened, name, opened.common / "migrate-agent/worktrees/1", Identity("Us", "us@example.invalid"), opened.base().time)


def test_commit_leaves_everything_of_the_user_alone(root: Path) -> None:
    hook = root / ".git/hooks/pre-commit"
    for name in ("pre-commit", "post-checkout", "reference-transaction", "prepare-commit-msg"):
        hook = root / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {root}/hook-ran\nexit 1\n")
        hook.chmod(0o755)
    git(root, "config", "commit.gpgsign", "true")
    git(root, "config", "gpg.program", "false")
    write(root, {"model.py": "import torch  # edited\n", "staged.py": "1\n", "loose.py": "2\n", ".gitignore": "*_jax.py\n"})
    git(root, "add", "staged.py")
    before = (
        git(root, "status", "--porcelain"),
        (root / ".git/index").read_bytes(),
        git(root, "rev-parse", "HEAD"),
        git(root, "branch", "--show-current"),
    )
    opened = open_repository(root)
    branch = branch_of(opened)
    sha = branch.commit(opened.base().sha, {"model_jax.py": "import jax\n"}, "Subject\n\nBody\n", 1)
    branch.close()
    after = (
        git(root, "status", "--porcelain"),
        (root / ".git/index").read_bytes(),
        git(root, "rev-parse", "HEAD"),
        git(root, "branch", "--show-current"),
    )
    assert after == before
    assert not (root / "hook-ran").exists()
    assert git(root, "show", "ours:model_jax.py") == "import jax"
    assert git(root, "show", "ours:model.py") == "import torch"
    assert git(root, "log", "-1", "--format=%H %an %ce %B", "ours") == f"{sha} Us us@example.invalid Subject\n\nBody"
    assert git(root, "worktree", "list").count("\n") == 0


def test_the_same_commit_again_is_the_same_object(root: Path) -> None:
    opened = open_repository(root)
    base = opened.base().sha
    first = branch_of(opened).commit(base, {"a_jax.py": "1\n"}, "One\n", 1)
    second = branch_of(opened).commit(first, {"b_jax.py": "2\n"}, "Two\n", 2)
    (opened.common / "refs/heads/ours.lock").write_text("")
    fresh = branch_of(opened)
    fresh.open(second)
    assert fresh.commit(first, {"b_jax.py": "2\n"}, "Two\n", 2) == second
    assert opened.tip("ours") == second


def test_a_branch_that_someone_moved_is_not_overwritten(root: Path) -> None:
    opened = open_repository(root)
    base = opened.base().sha
    first = branch_of(opened).commit(base, {"a_jax.py": "1\n"}, "One\n", 1)
    other = git(root, "commit-tree", f"{base}^{{tree}}", "-p", first, "-m", "theirs")
    git(root, "update-ref", "refs/heads/ours", other)
    with pytest.raises(UserError, match="moved"):
        branch_of(opened).commit(first, {"b_jax.py": "2\n"}, "Two\n", 2)
    assert opened.tip("ours") == other


def test_export_is_the_whole_commit_as_it_was_committed(root: Path, tmp_path: Path) -> None:
    write(root, {"model.py": "edited\n", "untracked.py": "1\n"})
    opened = open_repository(root)
    opened.export(opened.base().sha, tmp_path / "out")
    found = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert found == set(FILES)
    assert (tmp_path / "out/model.py").read_text() == "import torch\n"
    assert (tmp_path / "out/pkg/data.txt").read_bytes() == b"x\r\n"


OURS = manifest({"m_jax.py": "ours\n"})
SHEET = f'{{"files": {OURS}}}'
"""Evidence of a unit that was merged by a request of its own."""


@pytest.mark.parametrize(
    ("in_base", "in_tree", "conflict"),
    [
        ({}, {}, False),
        ({"m_jax.py": "theirs\n"}, {}, True),
        ({}, {"m_jax.py": "theirs\n"}, True),
        ({"m_jax.py": "ours\n", ".migrate/files.json": manifest({"m_jax.py": "ours\n"})}, {}, False),
        ({"m_jax.py": "ours, edited\n", ".migrate/files.json": manifest({"m_jax.py": "ours\n"})}, {}, True),
        ({"m_jax.py": "ours\n", ".migrate/files.json": manifest({"m_jax.py": "ours\n"})}, {"m_jax.py": "edited\n"}, True),
        ({"m_jax.py": "theirs\n", ".migrate/files.json": "[not json"}, {}, True),
        ({"m_jax.py": "ours\n", ".migrate/evidence/m.py/M/evidence.json": SHEET}, {}, False),
        ({"m_jax.py": "ours, edited\n", ".migrate/evidence/m.py/M/evidence.json": SHEET}, {}, True),
        ({"m_jax.py/file": "a folder\n"}, {}, True),
    ],
)
def test_target_files_of_the_user_are_told_from_ours(
    tmp_path: Path, in_base: dict[str, str], in_tree: dict[str, str], conflict: bool
) -> None:
    root = repository(tmp_path / "repo", {"model.py": "", **in_base})
    opened = open_repository(root)
    opened.export(opened.base().sha, tmp_path / "base")
    write(root, in_tree)
    assert opened.conflicts(tmp_path / "base", ["m_jax.py", "other_jax.py"]) == (["m_jax.py"] if conflict else [])


def test_identity_falls_back_to_ours(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NAME", "EMAIL"):
        monkeypatch.delenv(f"GIT_AUTHOR_{name}", raising=False)
    assert open_repository(root).identity() == Identity("migrate-agent", "migrate-agent@localhost")
    git(root, "config", "user.name", "Someone")
    assert open_repository(root).identity().name == "Someone"


def test_branch_names(root: Path) -> None:
    opened = open_repository(root)
    assert opened.free_branch("", "migrate-agent/abc") == "migrate-agent/abc"
    git(root, "branch", "migrate-agent/abc")
    assert opened.free_branch("", "migrate-agent/abc") == "migrate-agent/abc-2"
    branch_of(opened).commit(opened.base().sha, {"a_jax.py": "1\n"}, f"One\n\nMigrate-Agent-Base: {opened.base().sha}\n", 1)
    assert opened.free_branch("ours", "x") == "ours-2"
    for wanted, message in (
        ("main", "not made by"),
        ("a..b", "no such branch name"),
        ("main/x", "beside main"),
        ("migrate-agent", "beside migrate-agent/abc"),
    ):
        with pytest.raises(UsageError, match=message):
            opened.free_branch(wanted, "x")


def test_detached_head_and_linked_worktree(root: Path, tmp_path: Path) -> None:
    git(root, "checkout", "-q", "--detach")
    git(root, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    assert open_repository(root).base().sha == git(root, "rev-parse", "HEAD")
    assert open_repository(tmp_path / "linked").common == (root / ".git").resolve()


def test_git_variables_of_a_caller_do_not_mislead(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = repository(tmp_path / "elsewhere", {"x": "1"})
    monkeypatch.setenv("GIT_DIR", str(elsewhere / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(elsewhere / ".git/index"))
    assert open_repository(root).common == (root / ".git").resolve()


def test_manifest_is_sorted_json() -> None:
    assert list(json.loads(manifest({"b": "1", "a": "2"}))) == ["a", "b"]
